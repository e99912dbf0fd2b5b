import type { Runtime } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'

/** A runtime with a clock that moves only on request. Timers never fire. */
export interface StillRuntime extends Runtime {
  advance(ms: number): void
}

export function stillRuntime(startMs = Date.parse('2025-03-01T12:00:00Z')): StillRuntime {
  let now = startMs
  return {
    clock: { now: () => now, monotonic: () => now - startMs, after: () => () => {} },
    random: systemRuntime().random,
    advance: (ms) => void (now += ms),
  }
}
