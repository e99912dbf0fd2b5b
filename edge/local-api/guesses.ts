import type { Clock } from '../../protocol/model/runtime.ts'
import { networkOf } from '../../protocol/model/network.ts'

export interface GuessLimits {
  /** Failures of a network without a delay. */
  free: number
  /** The delay after the first further failure; it doubles with each one. */
  firstMs: number
  maxMs: number
  /** One failure is forgotten after this time. */
  forgetMs: number
}

interface Failures {
  count: number
  at: number
}

/** Networks that are remembered; the one that failed longest ago is forgotten first. */
const NETWORKS = 1000

/** Delays networks that present wrong tokens. During its delay a network's tokens are not checked, right ones included. */
export class Guesses {
  readonly #clock: Clock
  readonly #limits: GuessLimits
  readonly #failures = new Map<string, Failures>()

  constructor(clock: Clock, limits: GuessLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  /** How long an address must wait before its next attempt is checked, in milliseconds; 0 if it need not wait. */
  delayOf(address: string): number {
    const failures = this.#failures.get(networkOf(address))
    if (failures === undefined) return 0
    const extra = this.#remaining(failures) - this.#limits.free
    if (extra < 0) return 0
    const { firstMs, maxMs } = this.#limits
    const delayMs = Math.min(maxMs, firstMs * 2 ** Math.min(extra, 30))
    return Math.max(0, failures.at + delayMs - this.#clock.monotonic())
  }

  fail(address: string): void {
    const network = networkOf(address)
    const before = this.#failures.get(network)
    const count = (before === undefined ? 0 : this.#remaining(before)) + 1
    this.#failures.delete(network)
    this.#failures.set(network, { count, at: this.#clock.monotonic() })
    if (this.#failures.size > NETWORKS) this.#failures.delete(this.#failures.keys().next().value!)
  }

  #remaining({ count, at }: Failures): number {
    return Math.max(0, count - Math.floor((this.#clock.monotonic() - at) / this.#limits.forgetMs))
  }
}
