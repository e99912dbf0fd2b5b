import type { Clock } from '../../protocol/model/runtime.ts'
import { isNoticeable } from '../../protocol/model/vitals.ts'
import type { Heartbeat } from '../../protocol/mqtt/session.ts'

/** Time after which unchanged figures are reported again, because a heartbeat may be lost. */
const AGAIN_MS = 5 * 60_000

/** Reads the figures of one connection's heartbeats, and returns them if they are due (SPEC §13). */
export function vitalsDue(
  clock: Clock,
  read: (() => Heartbeat['vitals']) | undefined,
): () => Heartbeat['vitals'] {
  let reported: { vitals: NonNullable<Heartbeat['vitals']>; atMs: number } | undefined
  return () => {
    const vitals = read?.()
    if (!vitals) return undefined
    const atMs = clock.monotonic()
    if (reported && atMs - reported.atMs < AGAIN_MS && !isNoticeable(reported.vitals, vitals))
      return undefined
    reported = { vitals, atMs }
    return vitals
  }
}
