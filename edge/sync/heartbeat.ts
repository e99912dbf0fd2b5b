import { every } from '../../protocol/model/runtime.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'

export interface Heartbeat {
  /** What it reports has changed: a beat follows soon, one for all changes until then. */
  changed(): void
  stop(): void
}

/** Calls `beat` at once, every `heartbeatMs`, and `healthMs` after a change. */
export function startHeartbeat(
  clock: Clock,
  settings: { heartbeatMs: number; healthMs: number },
  beat: () => void,
): Heartbeat {
  let cancelSoon: Cancel | undefined
  const cancelSeries = every(clock, settings.heartbeatMs, beat)
  beat()
  return {
    changed() {
      cancelSoon ??= clock.after(settings.healthMs, () => {
        cancelSoon = undefined
        beat()
      })
    },
    stop() {
      cancelSeries()
      cancelSoon?.()
    },
  }
}
