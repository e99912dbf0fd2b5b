import { expect, test } from 'vitest'
import {
  nextStep,
  planWaves,
  type Rollout,
  type RolloutHub,
  type Step,
} from '../../../cloud/operations/releases/waves.ts'
import type { UpdateReport } from '../../../protocol/mqtt/session.ts'

const NEW = '2026.4.1+0000002'
const id = '019a0000-0000-7000-8000-000000000001'
const rollout: Rollout = { id, version: NEW, failures: '10%', state: 'running', ended_at: null }
const HOUR = 3_600_000
const offlineMs = 24 * HOUR

const report = (state: UpdateReport['state'], error?: string): UpdateReport => ({
  version: NEW,
  rollout: id,
  state,
  ...(error !== undefined && { error }),
})
const ofOther = (state: UpdateReport['state']): UpdateReport => ({
  ...report(state),
  rollout: '019a0000-0000-7000-8000-000000000002',
})
const hub = (hubId: number, wave: number, parts: Partial<RolloutHub> = {}): RolloutHub => ({
  hubId,
  wave,
  state: 'pending',
  error: null,
  givenAt: null,
  lastHeardAt: 0,
  version: '2026.3.1+0000001',
  report: null,
  isRetired: false,
  ...parts,
})
const step = (hubs: readonly RolloutHub[], parts: Partial<Rollout> = {}, now = 0): Step =>
  nextStep({ ...rollout, ...parts }, hubs, { now, offlineMs })
const changesOf = ({ changed }: Step) => changed.map(({ hubId, state, givenAt }) => [hubId, state, givenAt])

test('waves count hubs in the order of their ids, and a percentage is rounded up', () => {
  const waves = (hubs: number, ...amounts: string[]) => [
    ...planWaves(
      Array.from({ length: hubs }, (_, index) => hubs - index),
      amounts,
    ).values(),
  ]
  expect(waves(12, '1', '10%', '100%')).toEqual([1, 2, ...Array<number>(10).fill(3)])
  expect(waves(3, '1', '10%', '100%')).toEqual([1, 3, 3])
  expect(waves(3, '2', '50%')).toEqual([1, 1])
  expect(waves(0, '100%')).toEqual([])
})

test('a wave gets the release only after every hub of the former wave has ended', () => {
  const first = step([hub(1, 1), hub(2, 2)])
  expect(changesOf(first)).toEqual([[1, 'pending', 0]])
  for (const state of ['downloading', 'waiting', 'confirming'] as const) {
    const { changed } = step([hub(1, 1, { givenAt: 0, report: report(state) }), hub(2, 2)])
    expect(changed).toMatchObject([{ hubId: 1, state, givenAt: 0 }])
  }
  const second = step([hub(1, 1, { givenAt: 0, report: report('succeeded') }), hub(2, 2)], {}, 5)
  expect(changesOf(second)).toEqual([
    [1, 'succeeded', 0],
    [2, 'pending', 5],
  ])
  const last = step([
    hub(1, 1, { state: 'succeeded' }),
    hub(2, 2, { givenAt: 5, report: report('succeeded') }),
  ])
  expect(last).toMatchObject({ state: 'completed', isOpen: false })
})

test('a report of another rollout does not count, and a hub with the version already has succeeded', () => {
  const other = ofOther('failed')
  expect(changesOf(step([hub(1, 1, { report: other })]))).toEqual([[1, 'pending', 0]])
  expect(step([hub(1, 1, { givenAt: 0, report: other })]).changed).toEqual([])
  expect(changesOf(step([hub(1, 1, { version: NEW })]))).toEqual([[1, 'succeeded', null]])
})

test('more failures in a wave than allowed stop the rollout, and hubs that have not switched lose the release', () => {
  const hubs = [
    hub(1, 1, { givenAt: 0, report: report('failed', 'crashes') }),
    hub(2, 1, { givenAt: 0, report: report('waiting') }),
    hub(3, 1, { givenAt: 0, report: report('confirming') }),
    hub(4, 2),
  ]
  const stopped = step(hubs)
  expect(stopped).toMatchObject({ state: 'stopped', isOpen: true })
  expect(changesOf(stopped)).toEqual([
    [1, 'rolled_back', 0],
    [2, 'pending', null],
    [3, 'confirming', 0],
  ])
  const after = step(
    [
      hub(1, 1, { state: 'rolled_back' }),
      hub(3, 1, { state: 'confirming', givenAt: 0, report: report('succeeded') }),
    ],
    { state: 'stopped' },
  )
  expect(after).toMatchObject({ state: 'stopped', isOpen: false })
  expect(changesOf(after)).toEqual([[3, 'succeeded', 0]])
  expect(step(hubs, { failures: '50%' }).state).toBe('running')
  expect(step(hubs, { failures: '1' }).state).toBe('running')
  expect(step(hubs, { failures: '0' }).state).toBe('stopped')
})

test('a paused rollout gives the release to no further hub, and an aborted rollout withdraws it', () => {
  const hubs = [hub(1, 1, { state: 'waiting', givenAt: 0, report: report('waiting') }), hub(2, 2)]
  expect(step(hubs, { state: 'paused' })).toMatchObject({ state: 'paused', changed: [], isOpen: true })
  const paused = [hub(1, 1, { state: 'succeeded' }), hub(2, 2)]
  expect(step(paused, { state: 'paused' })).toMatchObject({ changed: [], isOpen: true })
  const aborted = step(hubs, { state: 'aborted' })
  expect(changesOf(aborted)).toEqual([[1, 'pending', null]])
  expect(aborted).toMatchObject({ state: 'aborted', isOpen: true })
})

test('a hub that confirms the release of another rollout waits, and neither gets the release nor has succeeded', () => {
  for (const version of [NEW, '2026.3.1+0000001']) {
    const confirming = hub(1, 1, { version, report: ofOther('confirming'), lastHeardAt: HOUR })
    expect(step([confirming], {}, HOUR)).toMatchObject({ state: 'running', changed: [], isOpen: true })
    expect(step([{ ...confirming, givenAt: HOUR }], {}, HOUR).changed).toEqual([])
    expect(step([confirming], {}, HOUR + offlineMs).changed).toMatchObject([
      { state: 'skipped', error: 'offline' },
    ])
  }
  expect(changesOf(step([hub(1, 1, { report: ofOther('failed') })]))).toEqual([[1, 'pending', 0]])
  expect(changesOf(step([hub(1, 1, { version: NEW, report: ofOther('succeeded') })]))).toEqual([
    [1, 'succeeded', null],
  ])
})

test('a confirming hub that reports on another rollout has succeeded if it keeps the version, else has rolled back', () => {
  const confirming = hub(1, 1, { state: 'confirming', givenAt: 0, report: ofOther('downloading') })
  const over = { state: 'stopped', ended_at: 0 } as const
  const kept = step([{ ...confirming, version: NEW }], over)
  expect(kept).toMatchObject({ changed: [{ state: 'succeeded', error: null }], isOpen: false })
  const left = { changed: [{ state: 'rolled_back' }], isOpen: false }
  expect(step([confirming], over)).toMatchObject(left)
  expect(step([{ ...confirming, version: NEW, report: ofOther('confirming') }], over)).toMatchObject(left)
})

test.each(['stopped', 'aborted'] as const)(
  'a hub that switched before it learned that the rollout was %s is judged from its reports',
  (state) => {
    const over = { state, ended_at: 0 }
    const waiting = hub(1, 1, { report: report('waiting') })
    expect(step([waiting], over)).toMatchObject({ changed: [], isOpen: true })
    expect(step([waiting], over, offlineMs)).toMatchObject({ changed: [], isOpen: false })
    const confirming = { ...waiting, report: report('confirming') }
    const switched = step([confirming], over)
    expect(switched.isOpen).toBe(true)
    expect(changesOf(switched)).toEqual([[1, 'confirming', null]])
    const failed = step([{ ...switched.changed[0]!, report: report('failed', 'crashes') }], over)
    expect(failed).toMatchObject({ changed: [{ state: 'rolled_back', error: 'crashes' }], isOpen: false })
    expect(changesOf(step([{ ...waiting, report: report('succeeded') }], over))).toEqual([
      [1, 'succeeded', null],
    ])
  },
)

test('a retired hub is skipped at once, so the next wave starts', () => {
  const retired = hub(1, 1, { isRetired: true, givenAt: 0, report: report('waiting') })
  const { changed } = step([retired, hub(2, 1, { isRetired: true }), hub(3, 2)], {}, 5)
  expect(changed).toMatchObject([
    { hubId: 3, state: 'pending', givenAt: 5 },
    { hubId: 1, state: 'skipped', error: 'retired' },
    { hubId: 2, state: 'skipped', error: 'retired' },
  ])
})

test('a hub that is offline for the whole time is skipped, and a hub that is silent since its switch has failed', () => {
  const hubs = [
    hub(1, 1, { givenAt: 0 }),
    hub(2, 1, { givenAt: 0, report: report('waiting'), lastHeardAt: HOUR }),
    hub(3, 1, { givenAt: 0, report: report('confirming') }),
  ]
  const { changed } = step(hubs, { failures: '100%' }, offlineMs)
  expect(changed).toMatchObject([
    { hubId: 1, state: 'skipped', error: 'offline', givenAt: null },
    { hubId: 2, state: 'waiting', givenAt: 0 },
    { hubId: 3, state: 'rolled_back', error: 'silent since the switch' },
  ])
  const dead = step([hub(1, 1, { givenAt: 0, lastHeardAt: offlineMs })], {}, offlineMs)
  expect(dead.changed).toMatchObject([{ state: 'skipped', error: 'no progress' }])
})

test('a hub that cannot download the release is skipped with the reason that it reports', () => {
  const full = { ...report('downloading'), error: 'the disk is full' }
  const { changed } = step([hub(1, 1, { givenAt: 0, report: full, lastHeardAt: offlineMs })], {}, offlineMs)
  expect(changed).toMatchObject([{ state: 'skipped', error: 'no progress: the disk is full' }])
})

test('a connected hub that reports no result of its switch for the whole time has failed, and blocks no later rollout', () => {
  const now = 2 * offlineMs
  const stuck = (since: number) => ({ ...report('confirming'), since })
  const connected = { lastHeardAt: now, givenAt: HOUR }
  const [early, late] = [stuck(now - offlineMs + 1), stuck(now - offlineMs)]
  expect(step([hub(1, 1, { ...connected, report: early })], {}, now).changed).toMatchObject([
    { state: 'confirming' },
  ])
  for (const state of ['running', 'stopped'] as const) {
    const failed = step([hub(1, 1, { ...connected, report: late })], { state, ended_at: HOUR }, now)
    expect(failed).toMatchObject({
      changed: [{ state: 'rolled_back', error: 'no result since the switch' }],
      isOpen: false,
    })
  }
  const other = { ...late, rollout: ofOther('confirming').rollout }
  const next = step([hub(1, 1, { lastHeardAt: now, report: other }), hub(2, 2)], {}, now)
  expect(next.changed).toMatchObject([{ state: 'skipped', error: 'no result of another rollout' }])
})

test('a hub with controllers that wait too long for their firmware gets the release of the next rollout', () => {
  const now = 2 * offlineMs
  const version = '2026.3.1+0000001'
  const late = { ...ofOther('confirming'), version, since: now - offlineMs }
  expect(changesOf(step([hub(1, 1, { lastHeardAt: now, report: late })], {}, now))).toEqual([
    [1, 'pending', now],
  ])
})

test('a hub with controllers that refused the firmware of a release fails a second rollout of it', () => {
  const again = hub(1, 1, { version: NEW, report: ofOther('failed') })
  expect(changesOf(step([again]))).toEqual([[1, 'pending', 0]])
  const asked = { ...again, givenAt: 0, report: report('failed', 'controller bins: firmware 2') }
  expect(changesOf(step([asked]))).toEqual([[1, 'rolled_back', 0]])
})

const skipped = (hubId: number, error = 'offline', wave = 1): RolloutHub =>
  hub(hubId, wave, { state: 'skipped', error })

test('skipped hubs do not count in the share of failures that a wave allows', () => {
  const offline = Array.from({ length: 9 }, (_, index) => skipped(index + 2))
  const failed = hub(1, 1, { givenAt: 0, report: report('failed', 'crashes') })
  expect(step([failed, ...offline, hub(11, 2)])).toMatchObject({
    state: 'stopped',
    changed: [{ hubId: 1, state: 'rolled_back' }],
  })
})

test('a wave of which no hub was reached gets one hub of the next wave, before the next wave begins', () => {
  const fleet = [skipped(1, 'never connected'), hub(2, 2), hub(3, 2), hub(4, 3)]
  const first = step(fleet)
  expect(first.state).toBe('running')
  expect(first.changed).toMatchObject([{ hubId: 2, wave: 1, givenAt: 0 }])
  const drawn = first.changed[0]!
  const again = step([skipped(1), { ...drawn, state: 'skipped', error: 'offline' }, ...fleet.slice(2)])
  expect(again.changed).toMatchObject([{ hubId: 3, wave: 1, givenAt: 0 }])
  const next = step([skipped(1), { ...drawn, report: report('succeeded') }, ...fleet.slice(2)], {}, 5)
  expect(next.changed).toMatchObject([
    { hubId: 2, state: 'succeeded' },
    { hubId: 3, wave: 2, givenAt: 5 },
  ])
})

test('an offline hub replaces the hub of a wave only if all others are taken', () => {
  const now = 2 * offlineMs
  const later = [hub(2, 2, { lastHeardAt: HOUR }), hub(3, 3, { lastHeardAt: now })]
  expect(step([skipped(1), ...later], {}, now).changed).toMatchObject([{ hubId: 3, wave: 1 }])
  expect(step([skipped(1), later[0]!], {}, now).changed).toMatchObject([{ hubId: 2, wave: 1 }])
})

test('a wave in which hubs tried the release and none succeeded pauses the rollout, and a resumed one tries one more hub', () => {
  for (const tried of [
    hub(1, 1, { state: 'rolled_back' }),
    hub(1, 1, { givenAt: 0, lastHeardAt: offlineMs }),
  ]) {
    const paused = step([tried, hub(2, 2), hub(3, 2)], { failures: '1' }, offlineMs)
    expect(paused).toMatchObject({ state: 'paused', isOpen: true })
    expect(paused.changed[0]).toMatchObject({ hubId: 2, wave: 1, givenAt: null })
    const former = paused.changed[1] ?? tried
    const resumed = step([former, paused.changed[0]!, hub(3, 2)], { failures: '1' }, offlineMs)
    expect(resumed).toMatchObject({ state: 'running', changed: [{ hubId: 2, wave: 1, givenAt: offlineMs }] })
  }
})

test('a wave of hubs that were offline does not hold a release that an earlier wave has installed', () => {
  const fleet = [hub(1, 1, { state: 'succeeded' }), skipped(2, 'offline', 2), hub(3, 3), hub(4, 3)]
  expect(step(fleet).changed).toMatchObject([
    { hubId: 3, wave: 3, givenAt: 0 },
    { hubId: 4, wave: 3, givenAt: 0 },
  ])
})

test('a rollout that no hub has installed ends as stopped', () => {
  expect(step([skipped(1), skipped(2, 'no progress', 2)]).state).toBe('stopped')
  expect(step([hub(1, 1, { state: 'succeeded' }), skipped(2, 'offline', 2)]).state).toBe('completed')
})
