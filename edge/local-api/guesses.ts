import type { Clock } from '../../protocol/model/runtime.ts'

export interface GuessLimits {
  /** Failures of a network, or of a name, without a delay. */
  free: number
  /** The delay after the first further failure; it doubles with each one. */
  firstMs: number
  maxMs: number
  /** One failure is forgotten after this time. */
  forgetMs: number
  /** Maximum number of remembered networks, names, and successes. The oldest is forgotten first. */
  networks: number
}

/** The sender of a token, or of a name and a PIN. */
interface Sender {
  network: string
  name?: string
}

/**
 * Delays networks that send wrong tokens or PINs, and names with wrong PINs. During the delay none is checked, not even
 * a correct one. A network with a former success of the name
 * ignores the delay of the name: a stranger cannot lock a person out of the person's own device.
 */
export class Guesses {
  readonly #most: number
  readonly #networks: Counters
  /** Separate from the networks: invented names must not delete the count of a network. */
  readonly #names: Counters
  /** The networks and names of former successes. */
  readonly #successes = new Map<string, true>()

  constructor(clock: Clock, limits: GuessLimits) {
    this.#most = limits.networks
    this.#networks = new Counters(clock, limits)
    this.#names = new Counters(clock, limits)
  }

  /** Milliseconds until the next attempt of the sender is checked; 0 if it need not wait. */
  delayOf(sender: Sender): number {
    const { network, name } = sender
    const isForeign = name !== undefined && !this.#successes.has(pairOf(sender))
    return Math.max(this.#networks.delayOf(network), isForeign ? this.#names.delayOf(nameKey(name)) : 0)
  }

  /** Counts an attempt as a failure. Returns a function that makes it a success. */
  count(sender: Sender): () => void {
    const { network, name } = sender
    const undone = [
      this.#networks.count(network),
      ...(name === undefined ? [] : [this.#names.count(nameKey(name))]),
    ]
    return () => {
      for (const undo of undone) undo()
      if (name !== undefined) setNewest(this.#successes, pairOf(sender), true, this.#most)
    }
  }
}

const nameKey = (name: string): string => name.toLowerCase()
const pairOf = ({ network, name = '' }: Sender): string => `${network} ${nameKey(name)}`

interface Failures {
  count: number
  at: number
}

class Counters {
  readonly #clock: Clock
  readonly #limits: GuessLimits
  readonly #failures = new Map<string, Failures>()

  constructor(clock: Clock, limits: GuessLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  delayOf(key: string): number {
    const failures = this.#failures.get(key)
    if (failures === undefined) return 0
    const extra = this.#remaining(failures) - this.#limits.free
    if (extra < 0) return 0
    const { firstMs, maxMs } = this.#limits
    const delayMs = Math.min(maxMs, firstMs * 2 ** Math.min(extra, 30))
    return Math.max(0, failures.at + delayMs - this.#clock.monotonic())
  }

  /** Counts a failure. Returns its undo. */
  count(key: string): () => void {
    const before = this.#failures.get(key)
    const count = (before === undefined ? 0 : this.#remaining(before)) + 1
    const counted = { count, at: this.#clock.monotonic() }
    setNewest(this.#failures, key, counted, this.#limits.networks)
    return () => {
      const last = this.#failures.get(key)
      if (last === undefined) return
      // A failure that was counted later stays with its time.
      const rest = last === counted && before ? before : { count: last.count - 1, at: last.at }
      this.#failures.set(key, rest)
    }
  }

  #remaining({ count, at }: Failures): number {
    return Math.max(0, count - Math.floor((this.#clock.monotonic() - at) / this.#limits.forgetMs))
  }
}

/** Sets the newest entry of a map, and deletes the oldest above `most` entries. */
function setNewest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > most) map.delete(map.keys().next().value!)
}
