import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { runCommandLine, type Outcome } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import type { Answer, Diagnoses } from '../../../cloud/gateway/diagnoses.ts'
import { diagnosisWork } from '../../../cloud/operations/hubs/diagnoses.ts'
import { WorkRunner } from '../../../cloud/platform/work/runner.ts'
import { tarOf } from '../../../protocol/model/tar.ts'
import type { Diagnosis } from '../../../protocol/mqtt/diagnosis.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { testContext } from '../../world/context.ts'
import { connectSession } from '../../world/hub-log.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment, db } = await cloudFolder()
const runtime = systemRuntime()
/** The answers of the hub, and the requests to it. */
let answers: Answer[] = []
let asked: Diagnosis[] = []
const context = testContext(db, runtime)
const hub = {
  read({ wanted }: { wanted: Diagnosis }) {
    asked.push(wanted)
    return Promise.resolve(answers.shift())
  },
} as unknown as Diagnoses
const service = new WorkRunner(
  { ...context, settings: { ...context.settings, workPollMs: 50 } },
  diagnosisWork(context, hub),
)

beforeEach(async () => {
  answers = []
  asked = []
  await db.kysely.deleteFrom('hub_sessions').execute()
})
beforeAll(() => service.start())
afterAll(() => service.stop())
afterEach(async () => {
  await db.kysely.deleteFrom('audit_log').execute()
})

const connect = (): Promise<void> => connectSession(db, Date.now())

const logsOf = (lines: readonly object[], cursor = 'run.1'): Answer => ({
  content: gzipSync(lines.map((line) => JSON.stringify(line)).join('\n')),
  cursor,
})

/** Runs a command and collects its printed lines. */
async function hubs(args: readonly string[], signal = new AbortController().signal, columns?: number) {
  let printed = ''
  const print = (text: string): void => void (printed += text)
  const terminal = { print, signal, ...(columns !== undefined && { columns }) }
  const outcome: Outcome = await runCommandLine(hubCommands, runtime, args, environment, terminal)
  return { ...outcome, printed }
}

const acts = () => db.kysely.selectFrom('audit_log').select(['action', 'hub_id', 'detail']).execute()

test('logs prints a record on each line and is audited', async () => {
  await connect()
  answers = [logsOf([{ message: 'first' }, { message: 'second' }])]
  const { exitCode, printed, stdout } = await hubs(['logs', '1', '--since', '10m', '--limit', '5'])
  expect([exitCode, printed, stdout]).toEqual([0, '{"message":"first"}\n{"message":"second"}\n', ''])
  expect(asked).toEqual([{ kind: 'logs', since_ms: 600_000, limit: 5 }])
  expect(await acts()).toMatchObject([{ action: 'hubs.logs', hub_id: 1 }])
  expect(await db.kysely.selectFrom('diagnoses').selectAll().execute()).toEqual([])
})

test('a followed log continues after the cursor until it is stopped, and is audited once', async () => {
  await connect()
  answers = [logsOf([{ n: 1 }], 'run.1'), logsOf([], 'run.1'), logsOf([{ n: 2 }], 'run.2')]
  const stopped = new AbortController()
  const following = hubs(['logs', '1', '--since', '1h', '--follow'], stopped.signal)
  await expect.poll(() => asked.length, { timeout: 60_000 }).toBe(3)
  stopped.abort()
  expect(await following).toMatchObject({ exitCode: 0, printed: '{"n":1}\n{"n":2}\n' })
  expect(asked.map((one) => (one.kind === 'logs' ? one.after : ''))).toEqual([undefined, 'run.1', 'run.1'])
  expect(await acts()).toHaveLength(1)
})

test('logs refuses an answer that cannot be unpacked, and prints at most the wanted number of lines', async () => {
  await connect()
  answers = [{ content: Buffer.from('no gzip'), cursor: null }, logsOf([{ n: 1 }, { n: 2 }, { n: 3 }])]
  const args = ['logs', '1', '--since', '10m', '--limit', '2']
  expect(await hubs(args)).toMatchObject({
    exitCode: 1,
    printed: '',
    stderr: expect.stringMatching(/^error: fault/) as string,
  })
  expect(await hubs(args)).toMatchObject({ exitCode: 0, printed: '{"n":2}\n{"n":3}\n' })
})

test('logs escapes control characters of a hub on a terminal, and prints them unchanged elsewhere', async () => {
  await connect()
  const content = gzipSync('{"n":1}\n\u001b[2J\u009b31m\rhidden\u007f\tend')
  const args = ['logs', '1', '--since', '10m']
  answers = [
    { content, cursor: null },
    { content, cursor: null },
  ]
  const { signal } = new AbortController()
  expect((await hubs(args, signal, 80)).printed).toBe(
    '{"n":1}\n\\u001b[2J\\u009b31m\\u000dhidden\\u007f\tend\n',
  )
  expect((await hubs(args, signal)).printed).toBe('{"n":1}\n\u001b[2J\u009b31m\rhidden\u007f\tend\n')
})

test('bundle refuses an archive that unpacks to too much or is no archive, and stores no file', async () => {
  await connect()
  const file = join(folder, 'refused.tar.gz')
  const backwards = tarOf({ 'log.jsonl': '' }, 0)
  backwards.write('-0000001000', 124, 'latin1')
  for (const archive of [
    gzipSync(Buffer.alloc(81 * 1024 * 1024)),
    Buffer.from('no gzip'),
    gzipSync(backwards),
  ]) {
    answers = [{ content: archive, cursor: null }]
    expect(await hubs(['bundle', '1', '--to', file])).toMatchObject({
      exitCode: 1,
      stderr: 'error: fault: the archive of hub 1 cannot be read\n',
    })
    expect(existsSync(file)).toBe(false)
  }
})

test('bundle stores the archive for its user alone and lists its contents', async () => {
  await connect()
  const archive = gzipSync(tarOf({ 'doctor.json': '{}', 'log.jsonl': '' }, 0))
  answers = [{ content: archive, cursor: null }]
  const file = join(folder, 'bundle.tar.gz')
  const { exitCode, stdout } = await hubs(['bundle', '1', '--to', file])
  expect(exitCode).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    hub_id: 1,
    file,
    size_bytes: archive.length,
    contents: ['doctor.json', 'log.jsonl'],
  })
  expect(readFileSync(file)).toEqual(archive)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(await acts()).toMatchObject([{ action: 'hubs.bundle', hub_id: 1 }])
  rmSync(file)
})

test('a hub that is not connected is hub_offline, a hub that does not answer is timeout', async () => {
  const file = join(folder, 'never.tar.gz')
  for (const args of [
    ['logs', '1', '--since', '10m'],
    ['bundle', '1', '--to', file],
  ]) {
    expect(await hubs(args)).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^error: hub_offline/) as string,
    })
  }
  await connect()
  answers = [undefined]
  expect(await hubs(['bundle', '1', '--to', file])).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^error: timeout/) as string,
  })
  expect(existsSync(file)).toBe(false)
})

test('a missing, wrong or empty option ends with status 2', async () => {
  for (const args of [
    ['logs', '1'],
    ['logs', '1', '--since', '10'],
    ['logs', '1', '--since', '10 m'],
    ['logs', '1', '--since', '10m', '--limit', '10001'],
    ['logs', '1', '--since', '10m', '--limit', '0'],
    ['logs', '--since', '10m'],
    ['logs', 'one', '--since', '10m'],
    ['bundle', '1', '--to', ''],
    ['bundle'],
  ])
    expect({ args, ...(await hubs(args)) }).toMatchObject({ args, exitCode: 2, stdout: '' })
})

test('an unknown hub ends with status 1', async () => {
  expect(await hubs(['logs', '99', '--since', '10m'])).toMatchObject({ exitCode: 1 })
  expect(await hubs(['bundle', '99'])).toMatchObject({ exitCode: 1 })
})
