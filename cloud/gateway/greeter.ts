import type { Cancel, Clock, Random } from '../../protocol/model/runtime.ts'

/** A hub that has said hello. */
export interface Visitor {
  hubId: number
  /** Of its connection. */
  session: string
  /** It has been welcomed, and only asks whether somebody is there: others may join it. */
  isPatient: boolean
  /** Answers the hello; resolves when that is done, or has failed. */
  greet: () => Promise<void>
  /** Tells the hub to say hello again after so long. */
  putOff: (afterMs: number) => void
  /** Asks it to say hello before that. */
  hail: () => void
}

export interface GreeterSettings {
  /** The most hubs that are greeted at once. */
  greetAtOnce: number
  /** However slow the database is, so many are greeted at once where that is no more than `greetAtOnce`. */
  greetAtLeast: number
  /** A greeting is to take no longer than this for the number of those that are greeted with it. */
  greetTogetherMs: number
  /** A hub waits for its turn no longer than this; who would have to is put off. */
  greetWithinMs: number
  /** For the longest, until this. */
  greetAgainMs: number
  /** A hub that was recalled says hello within this, or it is not there. */
  recallMs: number
  /** Those that are patient wait for others so long. */
  gatherMs: number
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
 * the time that greeting all of them takes. When nobody waits any more before that, they are hailed: the time was reckoned by
 * a pace that was slower.
 */
export class Greeter {
  readonly #clock: Clock
  readonly #random: Random
  readonly #settings: GreeterSettings
  /** By hub, the newest hello last. */
  readonly #waiting = new Map<number, Visitor>()
  /** Those that wait, the newest last, among others that wait no more. */
  #stack: Visitor[] = []
  /** The hubs that were put off and have not been greeted since, and when they come again. */
  readonly #awaited = new Map<number, { atMs: number; hail: () => void }>()
  /** Those of them that were hailed, and when. */
  readonly #recalled = new Map<number, number>()
  #cancelGather: Cancel | undefined
  #cancelRecall: Cancel | undefined
  /** When the greetings began that are under way. */
  readonly #begun = new Set<{ atMs: number }>()
  #paceMs = FIRST_GUESS_MS
  /** It grows with each greeting that was quick, as those that are greeted together share its cost, and shrinks with slow ones. */
  #window: number
  #countedMs = 0

  constructor({ clock, random }: { clock: Clock; random: Random }, settings: GreeterSettings) {
    this.#clock = clock
    this.#random = random
    this.#settings = settings
    this.#window = settings.greetAtLeast
  }

  /** The time from one greeting to the next while hubs wait; longer while greetings hang. Milliseconds. */
  get paceMs(): number {
    const [oldest] = this.#begun
    if (!oldest) return this.#paceMs
    return Math.max(this.#paceMs, (this.#clock.monotonic() - oldest.atMs) / this.#atOnce)
  }

  /** How many are greeted at once by now. */
  get #atOnce(): number {
    return Math.min(this.#settings.greetAtOnce, this.#window)
  }

  /** A hello has come: it is answered now, soon, or the hub put off. It replaces an earlier one of the hub. */
  enter(visitor: Visitor): void {
    this.#recalled.delete(visitor.hubId)
    this.#waiting.delete(visitor.hubId)
    this.#waiting.set(visitor.hubId, visitor)
    this.#stack.push(visitor)
    if (visitor.isPatient) this.#gather()
    else this.#next()
    while (this.#waiting.size * this.paceMs > this.#settings.greetWithinMs) this.#putOff()
    if (this.#stack.length > 2 * this.#waiting.size) this.#stack = [...this.#waiting.values()]
  }

  /** The hub's connection has ended: its hello waits for nobody. */
  leave(hubId: number, session: string): void {
    if (this.#waiting.get(hubId)?.session === session) this.#waiting.delete(hubId)
    this.#awaited.delete(hubId)
    this.#recalled.delete(hubId)
  }

  /** No hub can be answered any more. */
  clear(): void {
    this.#waiting.clear()
    this.#stack = []
    this.#awaited.clear()
    this.#recalled.clear()
    this.#cancelGather?.()
    this.#cancelGather = undefined
    this.#cancelRecall?.()
    this.#cancelRecall = undefined
  }

  #gather(): void {
    this.#cancelGather ??= this.#clock.after(this.#settings.gatherMs, () => {
      this.#cancelGather = undefined
      this.#next()
    })
  }

  #next(): void {
    while (this.#begun.size < this.#atOnce) {
      const visitor = this.#stack.pop()
      if (!visitor) return this.#recall()
      if (this.#waiting.get(visitor.hubId) !== visitor) continue
      this.#waiting.delete(visitor.hubId)
      void this.#greet(visitor)
    }
  }

  /** Hails those that were put off, the earliest first, and no more at once than are greeted at once. */
  #recall(): void {
    const now = this.#clock.monotonic()
    const { recallMs } = this.#settings
    for (const [hubId, atMs] of this.#recalled) if (now - atMs >= recallMs) this.#recalled.delete(hubId)
    for (const [hubId, { hail }] of this.#awaited) {
      if (this.#begun.size + this.#recalled.size >= this.#atOnce) return
      this.#awaited.delete(hubId)
      this.#recalled.set(hubId, now)
      // Where none of them comes there is no other occasion to hail the next ones.
      this.#cancelRecall ??= this.#clock.after(recallMs, () => {
        this.#cancelRecall = undefined
        this.#next()
      })
      hail()
    }
  }

  async #greet({ hubId, greet }: Visitor): Promise<void> {
    this.#awaited.delete(hubId)
    const begun = { atMs: this.#clock.monotonic() }
    this.#begun.add(begun)
    const together = this.#begun.size
    await greet()
    const atOnce = Math.max(together, this.#begun.size)
    this.#begun.delete(begun)
    const tookMs = this.#clock.monotonic() - begun.atMs
    const { greetTogetherMs, greetAtOnce, greetAtLeast } = this.#settings
    // How long one takes that is alone says little of how many there can be.
    if (atOnce >= Math.min(greetAtLeast, greetAtOnce) || tookMs / atOnce < this.#paceMs)
      this.#paceMs += LATEST * (tookMs / atOnce - this.#paceMs)
    if (tookMs <= greetTogetherMs) this.#window = Math.min(greetAtOnce, this.#window + 1)
    else if (tookMs > 2 * greetTogetherMs) this.#window = Math.max(greetAtLeast, this.#window - 1)
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
    this.#awaited.set(visitor.hubId, { atMs: now + afterMs, hail: visitor.hail })
    visitor.putOff(afterMs)
  }

  /** Those that did not come when they were told to: another process has greeted them, or they have gone. */
  #forgetLost(now: number): void {
    const { greetAgainMs } = this.#settings
    if (now - this.#countedMs < greetAgainMs) return
    this.#countedMs = now
    for (const [hubId, { atMs }] of this.#awaited) if (now - atMs > greetAgainMs) this.#awaited.delete(hubId)
  }
}
