import type { Clock } from '../../protocol/model/runtime.ts'

/** A longer memory would let the drift between two clocks count for more than the delays that it evens out. */
const SAMPLES = 4

/** What this process knows of the hubs' monotonic clocks, from hellos and heartbeats. */
export class HubClocks {
  readonly #clock: Clock
  /** Samples: the hub's clock less ours at a message's arrival, never more than the true difference (SPEC §6). */
  readonly #hubs = new Map<number, { session: string; aheadMs: number[] }>()
  readonly #waiting = new Map<number, Set<() => void>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A message of `session` has said what the hub's clock was. */
  heard(hubId: number, session: string, hubMonotonic: number): void {
    const known = this.#hubs.get(hubId)
    const earlier = known?.session === session ? known.aheadMs.slice(1 - SAMPLES) : []
    this.#hubs.set(hubId, { session, aheadMs: [...earlier, hubMonotonic - this.#clock.monotonic()] })
    for (const resolve of this.#waiting.get(hubId) ?? []) resolve()
  }

  /** The hub's monotonic clock now, or a little earlier; `undefined` where this process has not heard that session. */
  now(hubId: number, session: string): number | undefined {
    const known = this.#hubs.get(hubId)
    if (known?.session !== session) return undefined
    return this.#clock.monotonic() + Math.max(...known.aheadMs)
  }

  /** Resolves when the hub is heard next, or after `timeoutMs`. */
  async next(hubId: number, timeoutMs: number): Promise<void> {
    const waiting = this.#waiting.get(hubId) ?? new Set()
    this.#waiting.set(hubId, waiting)
    await new Promise<void>((resolve) => {
      const done = (): void => {
        cancel()
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(hubId) === waiting) this.#waiting.delete(hubId)
        resolve()
      }
      const cancel = this.#clock.after(timeoutMs, done)
      waiting.add(done)
    })
  }
}
