import type { z } from 'zod'
import type { StoredReport } from '../../gateway/desired-state.ts'
import type { rolloutHubStates, rolloutStates } from '../../platform/store/tables/hubs.ts'

export type RolloutState = (typeof rolloutStates)[number]
export type RolloutHubState = (typeof rolloutHubStates)[number]

/** A hub of a rollout, with the cloud's knowledge of it. */
export interface RolloutHub {
  hubId: number
  wave: number
  state: RolloutHubState
  error: string | null
  /** When the hub got the release; null before its wave and after a withdrawal. Milliseconds since the Unix epoch. */
  givenAt: number | null
  /** Null: the hub was never connected. */
  lastHeardAt: number | null
  /** Version that the hub reported. */
  version: string | null
  /** The latest report; it may name another rollout. */
  report: z.infer<typeof StoredReport> | null
  isRetired: boolean
}

export interface Rollout {
  id: string
  version: string
  failures: string
  state: RolloutState
  /** Milliseconds since the Unix epoch; null while it runs. */
  ended_at: number | null
}

/** The next state of a rollout and of its hubs. */
export interface Step {
  state: RolloutState
  /** Hubs with a changed row. A hub with a changed `givenAt` gets the release, or loses it (null). A replacement is the first. */
  changed: RolloutHub[]
  /** A later step may change more. */
  isOpen: boolean
}

const AMOUNT = /^(?:(100|[1-9]?\d)%|([1-9]\d{0,5}|0))$/

/** `10%`, or a number of hubs. */
export const isAmount = (text: string): boolean => AMOUNT.test(text)

/** The share of `total` that an amount names; not rounded. */
function shareOf(text: string, total: number): number {
  const [, percent, count] = AMOUNT.exec(text)!
  return percent === undefined ? Number(count) : (Number(percent) * total) / 100
}

/** The wave of each hub. Each amount counts all hubs up to the end of its wave. Hubs beyond the last wave are left out. */
export function planWaves(hubIds: readonly number[], amounts: readonly string[]): Map<number, number> {
  const ends = amounts.map((amount) => Math.ceil(shareOf(amount, hubIds.length)))
  const sorted = hubIds.toSorted((a, b) => a - b)
  return new Map(
    sorted.flatMap((hubId, index) => {
      const wave = ends.findIndex((end) => index < end)
      return wave < 0 ? [] : [[hubId, wave + 1] as const]
    }),
  )
}

/** A connected hub that has not downloaded the release in time. */
const NO_PROGRESS = 'no progress'

const ended: ReadonlySet<RolloutHubState> = new Set(['succeeded', 'rolled_back', 'skipped'])

/** Decides the next step of a rollout from the reports of its hubs. `offlineMs`: ROLLOUT_OFFLINE_MS. */
export function nextStep(
  rollout: Rollout,
  hubs: readonly RolloutHub[],
  { now, offlineMs }: { now: number; offlineMs: number },
): Step {
  const judged = hubs.map((hub) => {
    if (ended.has(hub.state)) return hub
    if (hub.isRetired) return { ...hub, state: 'skipped' as const, error: 'retired' }
    const mayHaveSwitched = isInProgress(hub) || (reportsOn(hub, rollout) && !isBeforeSwitch(hub))
    return mayHaveSwitched ? judge(hub, rollout, { now, offlineMs }) : hub
  })
  const isGoing = rollout.state === 'running' || rollout.state === 'paused'
  const isFailed = isGoing && exceedsFailures(judged, rollout.failures)
  const vain = rollout.state === 'running' && !isFailed ? vainWave(judged) : undefined
  const state = isFailed ? 'stopped' : vain?.wasTried === true ? 'paused' : rollout.state
  const drawn = vain && replacement(judged, { now, offlineMs })
  const planned = judged.map((hub) => (hub === drawn ? { ...hub, wave: vain!.wave } : hub))
  const current = Math.min(...planned.filter((hub) => !ended.has(hub.state)).map(({ wave }) => wave))
  const isOver = state === 'stopped' || state === 'aborted'
  const next = planned.map((hub) => {
    if (ended.has(hub.state)) return hub
    if (state === 'running' && hub.wave === current && hub.givenAt === null) {
      if (keeps(hub, rollout.version)) return { ...hub, state: 'succeeded' as const }
      if (hub.report?.state !== 'confirming') return { ...hub, givenAt: now }
      // The hub still confirms the release of another rollout, or returns from it.
      if (now - (hub.lastHeardAt ?? 0) >= offlineMs)
        return { ...hub, state: 'skipped' as const, error: 'offline' }
      if (!isStuck(hub, now, offlineMs)) return hub
      // It runs the version, and a controller may wait for the firmware of this release.
      if (hub.version === hub.report.version) return { ...hub, givenAt: now }
      return { ...hub, state: 'skipped' as const, error: 'no result of another rollout' }
    }
    // A hub that has switched confirms the release, or returns by itself.
    if (isOver && hub.state !== 'confirming') return { ...hub, state: 'pending' as const, givenAt: null }
    return hub
  })
  const isCompleted = state === 'running' && next.every((hub) => ended.has(hub.state))
  const isRecent = now - (rollout.ended_at ?? now) < offlineMs
  // A hub may switch before it learns of the withdrawal.
  const awaitsReport = next.some(
    (hub) => !ended.has(hub.state) && reportsOn(hub, rollout) && isBeforeSwitch(hub),
  )
  const changed = next.filter((hub, index) => JSON.stringify(hub) !== JSON.stringify(hubs[index]))
  const isDrawn = ({ hubId }: RolloutHub): number => Number(hubId === drawn?.hubId)
  return {
    state: isCompleted ? outcome(next) : state,
    changed: changed.toSorted((one, other) => isDrawn(other) - isDrawn(one)),
    isOpen:
      !isCompleted &&
      (state === 'running' || state === 'paused' || next.some(isInProgress) || (isRecent && awaitsReport)),
  }
}

const isInProgress = ({ state, givenAt }: RolloutHub): boolean =>
  state === 'confirming' || (givenAt !== null && !ended.has(state))

const reportsOn = ({ report }: RolloutHub, { id }: Rollout): boolean => report?.rollout === id

const isBeforeSwitch = ({ report }: RolloutHub): boolean =>
  report?.state === 'downloading' || report?.state === 'waiting'

/** Whether a connected hub has sent the same report for too long: its updater does not work. */
const isStuck = ({ report }: RolloutHub, now: number, offlineMs: number): boolean =>
  report?.since !== undefined && now - report.since >= offlineMs

/** Whether the hub runs a version that it will not give up, and its controllers have not failed at the firmware. */
const keeps = ({ version: present, report }: RolloutHub, version: string): boolean =>
  present === version &&
  report?.state !== 'confirming' &&
  !(report?.state === 'failed' && report.version === version)

/** The state of a hub that has the release or has switched to it, from its report. */
function judge(
  hub: RolloutHub,
  rollout: Rollout,
  { now, offlineMs }: { now: number; offlineMs: number },
): RolloutHub {
  const report = reportsOn(hub, rollout) ? hub.report : null
  if (report?.state === 'failed') return { ...hub, state: 'rolled_back', error: report.error ?? null }
  if (report?.state === 'succeeded' || (report === null && keeps(hub, rollout.version)))
    return { ...hub, state: 'succeeded', error: null }
  if (hub.state === 'confirming' && report === null && hub.report !== null)
    return { ...hub, state: 'rolled_back', error: 'another rollout since the switch' }
  const reported = { ...hub, state: report?.state ?? hub.state }
  const givenAt = hub.givenAt ?? 0
  const isSilent = now - Math.max(hub.lastHeardAt ?? 0, givenAt) >= offlineMs
  if (reported.state === 'confirming') {
    const isWithout = report !== null && isStuck(hub, now, offlineMs)
    if (!isSilent && !isWithout) return reported
    const error = isSilent ? 'silent since the switch' : 'no result since the switch'
    return { ...reported, state: 'rolled_back', error }
  }
  if (isSilent) return { ...reported, state: 'skipped', error: 'offline', givenAt: null }
  // The hub has no updater, or its download never ends.
  if (reported.state !== 'waiting' && now - givenAt >= offlineMs)
    return {
      ...reported,
      state: 'skipped',
      error: report?.error === undefined ? NO_PROGRESS : `${NO_PROGRESS}: ${report.error}`,
      givenAt: null,
    }
  return reported
}

/** Whether a wave has more failures than the rollout allows. Skipped hubs have no result, so they do not count. */
function exceedsFailures(hubs: readonly RolloutHub[], failures: string): boolean {
  const withFailures = new Set(hubs.filter(({ state }) => state === 'rolled_back').map(({ wave }) => wave))
  return [...withFailures].some((wave) => {
    const inWave = hubs.filter((hub) => hub.wave === wave && hub.state !== 'skipped')
    const failed = inWave.filter(({ state }) => state === 'rolled_back')
    return failed.length > shareOf(failures, inWave.length)
  })
}

/**
 * The wave before the next one, if it ended without a success: nothing shows that the release works. `wasTried`: a connected hub
 * got the release, so the cause may be the release.
 */
function vainWave(hubs: readonly RolloutHub[]): { wave: number; wasTried: boolean } | undefined {
  const current = Math.min(...hubs.filter(({ state }) => !ended.has(state)).map(({ wave }) => wave))
  if (current === Infinity) return undefined
  const wave = Math.max(...hubs.map((hub) => hub.wave).filter((each) => each < current))
  const inWave = hubs.filter((hub) => hub.wave === wave)
  if (inWave.length === 0 || inWave.some(({ state }) => state === 'succeeded')) return undefined
  const wasTried = inWave.some(
    ({ state, error }) => state === 'rolled_back' || error?.startsWith(NO_PROGRESS) === true,
  )
  // Hubs that were offline say nothing against a release that an earlier wave has installed.
  if (!wasTried && hubs.some(({ state }) => state === 'succeeded')) return undefined
  return { wave, wasTried }
}

/** The next hub in the order of the waves. A hub that is not offline precedes the others. */
function replacement(
  hubs: readonly RolloutHub[],
  { now, offlineMs }: { now: number; offlineMs: number },
): RolloutHub | undefined {
  const isOffline = (hub: RolloutHub): number => Number(now - (hub.lastHeardAt ?? 0) >= offlineMs)
  return hubs
    .filter(({ state }) => !ended.has(state))
    .toSorted(
      (one, other) => isOffline(one) - isOffline(other) || one.wave - other.wave || one.hubId - other.hubId,
    )[0]
}

/** The end of a rollout in which every hub has ended. A rollout without a success has not done its work. */
const outcome = (hubs: readonly RolloutHub[]): RolloutState =>
  hubs.every((hub) => hub.isRetired) || hubs.some(({ state }) => state === 'succeeded')
    ? 'completed'
    : 'stopped'
