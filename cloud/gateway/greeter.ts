import type { Clock, Random } from '../../protocol/model/runtime.ts'

/** A hub that has said hello. */
export interface Visitor {
  hubId: number
  /** Of its connection. */
  session: string
  /** Answers the hello; resolves when that is done, or has failed. */
  greet: () => Promise<void>
  /** Tells the hub to say hello again after so long. */
  putOff: (afterMs: number) => void
}

export interface GreeterSettings {
  /** Hubs that are greeted at once. */
  greetAtOnce: number
  /** A hub waits for its turn no longer than this; who would have to is put off. */
  greetWithinMs: number
  /** For the longest, until this. */
  greetAgainMs: number
}

/** From one greeting to the next, before the first one has ended. Milliseconds. */
const FIRST_GUESS_MS = 5
/** The part of the latest greeting in the reckoned pace. */
const LATEST = 0.2
/** Nobody is put off by less. */
const LEAST_MS = 1000

/**
 * Hubs that say hello wait here for their turn, so that a thousand that come at once are greeted at the pace of the
 * database instead of none in time. The newest hello goes first: whoever has waited for long may have gone. Of one hub the
 * latest hello alone waits. Those whose turn would not come soon are told when to come again: each at another moment of
 * the time that greeting all of them takes.
 */
export class Greeter {
  readonly #clock: Clock
  readonly #random: Random
  readonly #settings: GreeterSettings
  /** By hub, the newest hello last. */
  readonly #waiting = new Map<number, Visitor>()
  /** The hubs that were put off and have not been greeted since, and when they come again. */
  readonly #awaited = new Map<number, number>()
  /** When the greetings began that are under way. */
  readonly #begun = new Set<{ atMs: number }>()
  #paceMs = FIRST_GUESS_MS
  #countedMs = 0

  constructor({ clock, random }: { clock: Clock; random: Random }, settings: GreeterSettings) {
    this.#clock = clock
    this.#random = random
    this.#settings = settings
  }

  /** The time from one greeting to the next while hubs wait; longer while greetings hang. Milliseconds. */
  get paceMs(): number {
    const [oldest] = this.#begun
    if (!oldest) return this.#paceMs
    return Math.max(this.#paceMs, (this.#clock.monotonic() - oldest.atMs) / this.#settings.greetAtOnce)
  }

  /** A hello has come: it is answered now, soon, or the hub put off. It replaces an earlier one of the hub. */
  enter(visitor: Visitor): void {
    this.#waiting.delete(visitor.hubId)
    this.#waiting.set(visitor.hubId, visitor)
    this.#next()
    while (this.#waiting.size * this.paceMs > this.#settings.greetWithinMs) this.#putOff()
  }

  /** The hub's connection has ended: its hello waits for nobody. */
  leave(hubId: number, session: string): void {
    if (this.#waiting.get(hubId)?.session === session) this.#waiting.delete(hubId)
    this.#awaited.delete(hubId)
  }

  /** No hub can be answered any more. */
  clear(): void {
    this.#waiting.clear()
    this.#awaited.clear()
  }

  #next(): void {
    while (this.#begun.size < this.#settings.greetAtOnce) {
      const visitor = [...this.#waiting.values()].at(-1)
      if (!visitor) return
      this.#waiting.delete(visitor.hubId)
      void this.#greet(visitor)
    }
  }

  async #greet({ hubId, greet }: Visitor): Promise<void> {
    this.#awaited.delete(hubId)
    const begun = { atMs: this.#clock.monotonic() }
    this.#begun.add(begun)
    const atOnce = this.#begun.size
    await greet()
    this.#begun.delete(begun)
    const tookMs = (this.#clock.monotonic() - begun.atMs) / atOnce
    this.#paceMs += LATEST * (tookMs - this.#paceMs)
    this.#next()
  }

  /** Puts off the one whose hello is the oldest. */
  #putOff(): void {
    const [visitor] = this.#waiting.values()
    if (!visitor) return
    this.#waiting.delete(visitor.hubId)
    const now = this.#clock.monotonic()
    this.#forgetLost(now)
    const allMs = (this.#waiting.size + this.#awaited.size + 1) * this.paceMs
    const withinMs = Math.min(allMs, this.#settings.greetAgainMs)
    const afterMs = Math.max(LEAST_MS, Math.round(withinMs * this.#random.fraction()))
    this.#awaited.set(visitor.hubId, now + afterMs)
    visitor.putOff(afterMs)
  }

  /** Those that did not come when they were told to: another process has greeted them, or they have gone. */
  #forgetLost(now: number): void {
    const { greetAgainMs } = this.#settings
    if (now - this.#countedMs < greetAgainMs) return
    this.#countedMs = now
    for (const [hubId, atMs] of this.#awaited) if (now - atMs > greetAgainMs) this.#awaited.delete(hubId)
  }
}
