import type { Clock } from '../../protocol/model/runtime.ts'
import type { TimeCorrection } from '../journal/correct-times.ts'
import type { Facts } from '../journal/facts.ts'

/**
 * The cloud's time on a hub whose own clock may have no battery.
 *
 * - After the cloud has sent its time since this start: the monotonic clock plus an offset. The offset
 *   follows the cloud's corrections of its own clock.
 * - Before that: an estimate. It is the last known time before the start, plus the wall clock's difference
 *   since, plus the time since the start.
 *
 * The estimate dates facts and may be too early or too late. When the cloud sends its time, facts dated by
 * the estimate are corrected (`correct-times.ts`). Deadlines that end something do not use the estimate.
 * Until the cloud has sent its time, only the time since this start counts towards them: a wrong clock makes
 * them late, never early. The order of facts never depends on this clock.
 */
export interface CloudClock {
  /** Milliseconds since the Unix epoch. */
  now: () => number
  /**
   * `now()` as far as the cloud has ever confirmed it, in this process or an earlier one; undefined if it
   * never has.
   */
  certain: () => number | undefined
  /** Whether the cloud has sent its time since this start. */
  isKnown: () => boolean
  /** Start of a deadline for a past instant `at` of the journal: `now()` minus the result has certainly passed. */
  countedFrom(at: number): number
  /** The cloud's deadline `at`, comparable with `now()`: never earlier than the real deadline. */
  due(at: number): number
  /**
   * Milliseconds by which the real time is later than `now()`, if the cloud's time is `clock.monotonic() +
   * offsetMs`.
   */
  errorOf(offsetMs: number): number
  /**
   * Takes over the cloud's time. Returns the interval and the error of the old estimate; call `undo` if the
   * journal cannot be corrected.
   */
  setOffset(offsetMs: number): TimeCorrection & { undo(): void }
  /** Stores the current estimate for the next start. */
  persist(): void
}

/** `latest`: the latest instant in the journal. `now()` is always later, whatever the wall clock shows. */
export function createCloudClock(clock: Clock, facts: Facts, latest: number): CloudClock {
  let offset: number | undefined
  const started = clock.monotonic()
  const mark = facts.get('clock')
  const estimate = mark ? mark.cloud + Math.max(0, clock.now() - mark.wall) : clock.now()
  const bound = Math.max(Math.floor(estimate), Math.floor(latest) + 1)
  // A lower bound of the cloud's time at this start, independent of any clock since the cloud's last message.
  const least = Math.min(mark?.least ?? bound, bound)
  // Whole milliseconds: these times go into the ledger and the journal.
  const now = (): number =>
    Math.floor(offset === undefined ? bound + clock.monotonic() - started : clock.monotonic() + offset)
  return {
    now,
    certain() {
      if (offset !== undefined) return now()
      // Before the first welcome, `least` comes only from this board's clock.
      return facts.get('live') ? Math.floor(least + clock.monotonic() - started) : undefined
    },
    isKnown: () => offset !== undefined,
    countedFrom: (at) => (offset === undefined ? Math.max(at, bound) : at),
    due: (at) => (offset === undefined ? at + bound - least : at),
    errorOf: (offsetMs) => Math.floor(clock.monotonic() + offsetMs) - now(),
    setOffset(offsetMs) {
      const believed = now()
      const since = offset === undefined ? bound : Math.floor(started + offset)
      const former = offset
      offset = offsetMs
      return {
        since,
        byMs: now() - believed,
        undo() {
          offset = former
        },
      }
    },
    persist() {
      const cloud = now()
      facts.set('clock', {
        cloud,
        least: offset === undefined ? cloud - bound + least : cloud,
        wall: clock.now(),
      })
    },
  }
}

/** How the hub received the cloud's time. */
export interface TimeSource {
  /** The time comes from a message of a running session; otherwise from the welcome. */
  passing: boolean
  /** Milliseconds between the hello and its welcome (default 0). */
  roundTripMs?: number
}

/** A smaller difference is network jitter. */
const UNEVEN_MS = 1000
/** Maximum transit time of a message. An earlier time within it proves nothing. */
const UNDER_WAY_MS = 60_000

/**
 * Classifies the cloud's time by how much later it is than `now()`. A message takes time to arrive, so its time is a lower
 * bound: a later time holds at once; an earlier one only if no delay explains it (MQTT SPEC §4). The round trip limits the
 * delay of a welcome.
 */
export function judgeTime(
  byMs: number,
  { passing, roundTripMs = 0 }: TimeSource,
): 'same' | 'delayed' | 'uneven' | 'stepped' {
  if (Math.abs(byMs) <= UNEVEN_MS) return 'same'
  const delayMs = passing ? UNDER_WAY_MS : Math.min(roundTripMs + UNEVEN_MS, UNDER_WAY_MS)
  if (byMs < 0 && byMs >= -delayMs) return 'delayed'
  return Math.abs(byMs) > UNDER_WAY_MS ? 'stepped' : 'uneven'
}
