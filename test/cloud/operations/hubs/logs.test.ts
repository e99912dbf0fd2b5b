import { gzipSync } from 'node:zlib'
import { afterEach, expect, test, vi } from 'vitest'
import { Diagnoses } from '../../../../cloud/gateway/diagnoses.ts'
import { DIAGNOSIS_WORK, diagnosisWork, recordsOf } from '../../../../cloud/operations/hubs/diagnoses.ts'
import { MAX_LOG_BYTES } from '../../../../protocol/mqtt/diagnosis.ts'
import { errorOf, openCloud, type TestCloud } from '../../../world/cloud.ts'
import { connectSession } from '../../../world/hub-log.ts'

afterEach(() => vi.restoreAllMocks())

const packed = (text: string): string => gzipSync(text).toString('base64')
const lineOf = (n: number): string =>
  JSON.stringify({ at: '2026-11-20T14:30:00.000Z', level: 'info', message: `record ${n}` })

/** Reads an answer, and counts the texts that the service parses. */
async function readAnswer(text: string, limit: number) {
  const parse = vi.spyOn(JSON, 'parse')
  const records = await recordsOf(packed(text), limit)
  const parsed = parse.mock.calls.length
  parse.mockRestore()
  return { records, parsed }
}

test('only the newest `limit` lines of an answer are parsed', async () => {
  const lines = Array.from({ length: 50 }, (_, n) => lineOf(n))
  const { records, parsed } = await readAnswer(lines.join('\n'), 3)
  expect(records!.map(({ message }) => message)).toEqual(['record 47', 'record 48', 'record 49'])
  expect(parsed).toBe(3)
})

test('empty lines of an answer are not parsed', async () => {
  const { records, parsed } = await readAnswer(`${lineOf(1)}\n${'\n'.repeat(500_000)}`, 10_000)
  expect([records!.length, parsed]).toEqual([1, 1])
})

test('a few broken lines are left out, and an answer with many of them is refused early', async () => {
  expect((await readAnswer(`{\n${lineOf(1)}\n{}`, 10)).records).toHaveLength(1)
  const { records, parsed } = await readAnswer('{\n'.repeat(50_000), 10_000)
  expect(records).toBeUndefined()
  expect(parsed).toBeLessThan(200)
})

test('a record that is nested too deeply for the answer of the service is left out', async () => {
  const deep = `${lineOf(1).slice(0, -1)},"field":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
  expect((await readAnswer(`${deep}\n${lineOf(2)}`, 10)).records).toMatchObject([{ message: 'record 2' }])
})

async function connectedCloud() {
  const app = await openCloud()
  await connectSession(app.context.db, app.runtime.clock.now())
  return app
}

/** Reads the log of hub 1 by the API. `eachPoll` stands in for the hub, with the id of the request. */
async function callLogs(app: TestCloud, eachPoll: (id: string) => Promise<unknown> | void) {
  const { context, runtime } = app
  const key = await app.key(['hubs:read'])
  const call = app.call('GET', '/api/v1/owners/hubs/logs?hub_id=1', { key })
  const state = { isOver: false }
  const over = call.finally(() => (state.isOver = true))
  const startedMs = runtime.clock.monotonic()
  while (!state.isOver && runtime.clock.monotonic() - startedMs < 600_000) {
    const row = await context.db.kysely.selectFrom('diagnoses').select('id').executeTakeFirst()
    if (row) await eachPoll(row.id)
    await runtime.clock.pass(250)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  expect(state.isOver).toBe(true)
  return { ...(await over), tookMs: runtime.clock.monotonic() - startedMs }
}

test.for([
  ['no gzip', Buffer.from('no gzip').toString('base64')],
  ['an empty answer', ''],
  ['more than 1 MiB unpacked', packed('\n'.repeat(MAX_LOG_BYTES + 1))],
  ['no log', packed('{\n'.repeat(1000))],
] as const)('the API answers 502 if a hub sends %s', async ([, content]) => {
  const app = await connectedCloud()
  const answer = { state: 'done', content, cursor: null } as const
  const called = await callLogs(app, () =>
    app.context.db.kysely.updateTable('diagnoses').set(answer).execute(),
  )
  expect(called.status).toBe(502)
  expect(errorOf(called).error).toMatchObject({ code: 'hardware_error', details: { reason: 'fault' } })
})

test('the API answers 504 after 40 seconds if a hub sends one byte every 9 seconds, and the reading ends', async () => {
  const app = await connectedCloud()
  const { clock } = app.runtime
  const diagnoses: Diagnoses = new Diagnoses({
    clock,
    listen: () => Promise.resolve(true),
    publish(hubId, { request, offset }) {
      const part = { request, offset, size: 5000, data: Buffer.alloc(1).toString('base64') }
      clock.after(9000, () => diagnoses.onPart(hubId, part))
      return true
    },
  })
  const work = diagnosisWork(app.context, diagnoses)[DIAGNOSIS_WORK]!
  let reading: Promise<unknown> | undefined
  const called = await callLogs(app, (subject) => {
    reading ??= Promise.resolve(work.run({ subject } as Parameters<typeof work.run>[0]))
  })
  expect(called.status).toBe(504)
  expect(errorOf(called).error).toMatchObject({ code: 'hardware_error', details: { reason: 'timeout' } })
  expect(called.tookMs).toBeGreaterThanOrEqual(40_000)
  expect(called.tookMs).toBeLessThan(45_000)
  await clock.settle(reading!)
  expect(clock.monotonic()).toBeLessThan(90_000)
})
