import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { rolloutCommands } from '../../../cloud/cli/rollouts.ts'
import { readDesired, storeUpdateReports } from '../../../cloud/gateway/desired-state.ts'
import { rolloutWork } from '../../../cloud/operations/releases/rollouts.ts'
import type { UpdateReport } from '../../../protocol/mqtt/session.ts'
import { addTestRelease } from '../../support/release.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { testContext } from '../../world/context.ts'
import { testMedia } from '../support/media.ts'
import { cloudFolder } from './cloud-folder.ts'

const { environment, db } = await cloudFolder()
const runtime = virtualRuntime()
const context = testContext(db, runtime)
const V = '2026.4.1+0000002'
await addTestRelease(context, testMedia(context), V)

interface Shown {
  rollout_id: string
  state: string
  ended_at?: string
  hubs: { hub_id: number; wave: number; state: string; error?: string }[]
}

async function rollouts(...args: string[]) {
  const { exitCode, stdout, stderr } = await runCommandLine(rolloutCommands, runtime, args, environment)
  return { exitCode, stderr, shown: (exitCode === 0 ? JSON.parse(stdout) : undefined) as Shown }
}
const step = (subject: string) =>
  rolloutWork(context, 'https://larder.example/releases')['rollout']!.run({ subject } as never)
const report = (hubId: number, rollout: string, state: UpdateReport['state']) =>
  db.transact((tx) =>
    storeUpdateReports(tx, runtime.clock.now(), [
      { hubId, hello: { desired: { applied: 1, failed: null, update: { version: V, rollout, state } } } },
    ]),
  )
const given = async (hubId: number) => (await readDesired(db.kysely, hubId)).software
const connect = (hubId: number) =>
  db.kysely
    .insertInto('hub_sessions')
    .values({
      hub_id: hubId,
      session: '0'.repeat(32),
      software: 'larder-edge 2026.3.1+0000001',
      process_id: 'one',
      is_connected: 1,
      lease_until: 0,
      last_heard_at: runtime.clock.now(),
    })
    .execute()

test('a rollout of an unknown version, and wrong waves or failures, are refused', async () => {
  expect(await rollouts('status')).toMatchObject({ exitCode: 1 })
  expect(await rollouts('start', '2026.9.9+9')).toMatchObject({ exitCode: 1 })
  expect(await rollouts('start', V, '--waves', '1,200%')).toMatchObject({ exitCode: 2 })
  expect(await rollouts('start', V, '--failures', 'few')).toMatchObject({ exitCode: 2 })
})

test('a rollout gives the release to its hubs wave by wave, and skips a hub that was never connected', async () => {
  await connect(1)
  const { shown } = await rollouts('start', V, '--waves', '1,100%')
  const { rollout_id: id } = shown
  expect(shown).toMatchObject({
    state: 'running',
    hubs: [
      { hub_id: 1, wave: 1, state: 'pending' },
      { hub_id: 2, wave: 2, state: 'skipped', error: 'never connected' },
    ],
  })
  expect(await rollouts('start', V)).toMatchObject({ exitCode: 1 })
  await step(id)
  expect(await given(1)).toMatchObject({ version: V, url: 'https://larder.example/releases', rollout: id })
  expect(await given(2)).toBe(null)
  await report(1, id, 'waiting')
  await step(id)
  expect((await rollouts('status')).shown.hubs[0]).toEqual({ hub_id: 1, wave: 1, state: 'waiting' })
  await report(1, id, 'succeeded')
  expect(await step(id)).toEqual({ next: null })
  const ended = (await rollouts('status', id)).shown
  expect(ended).toMatchObject({ state: 'completed', hubs: [{ state: 'succeeded' }, { state: 'skipped' }] })
  expect(ended.ended_at).toBeDefined()
})

test('a rollout is paused, resumed and aborted, and a change that its state does not allow is refused', async () => {
  runtime.clock.advance(1000)
  const { shown } = await rollouts('start', V)
  const { rollout_id: id } = shown
  expect(await rollouts('resume')).toMatchObject({ exitCode: 1 })
  expect((await rollouts('pause')).shown.state).toBe('paused')
  await step(id)
  expect((await given(1))?.rollout).not.toBe(id)
  expect((await rollouts('resume', id)).shown.state).toBe('running')
  await step(id)
  expect((await given(1))?.rollout).toBe(id)
  expect((await rollouts('abort')).shown.state).toBe('aborted')
  await step(id)
  expect(await given(1)).toBe(null)
  for (const change of ['pause', 'resume', 'abort'])
    expect(await rollouts(change)).toMatchObject({ exitCode: 1 })
  expect(await rollouts('pause', 'unknown')).toMatchObject({ exitCode: 1 })
  const acts = await db.kysely.selectFrom('audit_log').select('action').orderBy('id').execute()
  expect(acts.map(({ action }) => action)).toEqual([
    'rollouts.start',
    'rollouts.start',
    'rollouts.pause',
    'rollouts.resume',
    'rollouts.abort',
  ])
})
