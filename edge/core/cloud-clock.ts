import type { Clock } from '../../protocol/model/runtime.ts'
import type { TimeCorrection } from '../journal/correct-times.ts'
import type { Facts } from '../journal/facts.ts'

/**
 * The cloud's time at a hub whose own clock may have no battery. Once the cloud has spoken since this start it is the
 * monotonic clock plus an offset, and follows the cloud where that puts its own clock right. Before that it is an
 * estimate: the last time known before the start, plus what the wall clock says has passed since, plus what has passed
 * since the start. The estimate dates facts, and may be wrong in both directions; what was dated by it is put right when
 * the cloud speaks (`correct-times.ts`). Deadlines that end something do not go by it: until the cloud has spoken only
 * the time since this start counts towards them, so that a wrong clock makes them late, never early. Nothing is ordered
 * by any of it.
 */
export interface CloudClock {
  /** Milliseconds since the Unix epoch. */
  now: () => number
  /** As `now()`, as far as the cloud has confirmed it, in this life or an earlier one; undefined if it never has. */
  certain: () => number | undefined
  /** Whether the cloud has spoken since this start. */
  isKnown: () => boolean
  /** A past instant of the journal as deadlines count from it: `now()` less this is what has passed for certain. */
  begun(at: number): number
  /** A deadline that the cloud has set, as it is compared with `now()`: no earlier than it is in truth. */
  due(at: number): number
  /** By how much later it is than believed, if the cloud's time is `clock.monotonic() + offsetMs`. */
  errorOf(offsetMs: number): number
  /** Takes the time that the cloud says. Returns what was wrong until now; `undo` where it cannot be put right. */
  setOffset(offsetMs: number): TimeCorrection & { undo(): void }
  /** Writes the present estimate down for the next start. */
  persist(): void
}

/** `latest`: the latest instant in the journal. This life is later, whatever its clock says. */
export function createCloudClock(clock: Clock, facts: Facts, latest: number): CloudClock {
  let offset: number | undefined
  const started = clock.monotonic()
  const mark = facts.get('clock')
  const estimate = mark ? mark.cloud + Math.max(0, clock.now() - mark.wall) : clock.now()
  const bound = Math.max(Math.floor(estimate), Math.floor(latest) + 1)
  // No later than the cloud's time at this start, whatever clocks have said since the cloud last spoke.
  const least = Math.min(mark?.least ?? bound, bound)
  // Whole milliseconds: these times go into the ledger and the journal.
  const now = (): number =>
    Math.floor(offset === undefined ? bound + clock.monotonic() - started : clock.monotonic() + offset)
  return {
    now,
    certain() {
      if (offset !== undefined) return now()
      // Before the first welcome `least` is this board's own word.
      return facts.get('live') ? Math.floor(least + clock.monotonic() - started) : undefined
    },
    isKnown: () => offset !== undefined,
    begun: (at) => (offset === undefined ? Math.max(at, bound) : at),
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

/** Less than this is the network's own unevenness. */
const UNEVEN_MS = 1000
/** A message may have been under way for so long: what it says of the time proves nothing about an earlier one. */
const UNDER_WAY_MS = 60_000

/**
 * What the cloud's word about the time means, by how much later than believed it is. `passing`: as any message has it, not
 * the welcome. Since a message takes its time, what it says is a lower bound: a later time holds at once, an earlier one
 * only where no delay explains it (MQTT SPEC §4).
 */
export function judgeTime(byMs: number, { passing }: { passing: boolean }): 'same' | 'uneven' | 'stepped' {
  if (Math.abs(byMs) <= UNEVEN_MS || (passing && byMs < 0 && byMs >= -UNDER_WAY_MS)) return 'same'
  return Math.abs(byMs) > UNDER_WAY_MS ? 'stepped' : 'uneven'
}
