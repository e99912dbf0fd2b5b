import type { Clock } from '../../protocol/model/runtime.ts'
import type { TimeCorrection } from '../journal/correct-times.ts'
import type { Meta } from '../journal/meta.ts'

/**
 * The cloud's time at a hub whose own clock may have no battery. Once the cloud has spoken since this start it is the
 * monotonic clock plus an offset. Before that it is a lower bound: the last time known before the start, plus what the
 * wall clock says has passed since, plus what has passed since the start. A wall clock that came back reset says that
 * nothing has passed. A bound from below makes deadlines late, never early: an order that was journaled with time left
 * is still dispensed after a restart without network; what was dated by it is put right when the cloud speaks
 * (`correct-times.ts`). Nothing is ordered by it.
 */
export interface CloudClock {
  /** Milliseconds since the Unix epoch. */
  now: () => number
  /** Takes the time that the cloud says. Returns what the estimate of this life was wrong by until its first word; 0 from then on. */
  setOffset(offsetMs: number): TimeCorrection
  /** Writes the present estimate down for the next start. */
  persist(): void
}

/** `latest`: the latest instant in the journal. This life is later, whatever its clock says. */
export function createCloudClock(clock: Clock, meta: Meta, latest: number): CloudClock {
  let offset: number | undefined
  const started = clock.monotonic()
  const mark = meta.clockMark()
  const estimate = mark ? mark.cloud + Math.max(0, clock.now() - mark.wall) : clock.now()
  const bound = Math.max(Math.floor(estimate), Math.floor(latest) + 1)
  // Whole milliseconds: these times go into the ledger and the journal.
  const now = (): number =>
    Math.floor(offset === undefined ? bound + clock.monotonic() - started : clock.monotonic() + offset)
  return {
    now,
    setOffset(offsetMs) {
      const believed = offset === undefined ? now() : undefined
      offset = offsetMs
      return { since: bound, byMs: believed === undefined ? 0 : now() - believed }
    },
    persist: () => meta.setClockMark({ cloud: now(), wall: clock.now() }),
  }
}
