import type { Cancel, Clock, Random } from '../../protocol/model/runtime.ts'

/** A hello that waits for its answer. */
export interface PendingHello {
  hubId: number
  /** The session of the hello. */
  session: string
  /**
   * The hub has been welcomed and only checks whether the cloud still answers. Its hello may wait and be answered
   * together with others.
   */
  isPatient: boolean
  /** Answers the hello; resolves when that is done, or has failed. */
  answer: () => Promise<void>
  /** Rejects the hello with a retry-after in milliseconds. */
  reject: (afterMs: number) => void
  /** Requests a hello before that time. */
  hail: () => void
}

export interface HelloQueueSettings {
  /** Maximum number of hellos that are answered concurrently. */
  greetAtOnce: number
  /** Minimum number of hellos that are answered concurrently, however slow the database is; not above `greetAtOnce`. */
  greetAtLeast: number
  /** Target duration of an answer. Slower answers reduce the concurrency. */
  greetTogetherMs: number
  /** Longest wait for an answer; a hello that would wait longer is rejected with a retry-after. */
  greetWithinMs: number
  /** Longest retry-after. */
  greetAgainMs: number
  /** A hub that was asked for a hello sends it within this time, or counts as gone. */
  recallMs: number
  /** How long patient hellos wait for others. */
  gatherMs: number
}

/** Estimated time between answers before the first one is measured, in milliseconds. */
const FIRST_GUESS_MS = 5
/** Weight of the latest answer in the estimate. */
const LATEST = 0.2
/** Shortest retry-after. */
const LEAST_MS = 1000

/**
 * The queue of hellos. If a thousand hubs connect at once, it answers them at the pace of the database, instead of none
 * in time. The newest hello is answered first, because a hub that has waited long may be gone. Only the latest hello of
 * a hub counts, and a hub has at most one running answer, so that one hub cannot take all places. A hello that would wait too long is rejected with a random retry-after within the time that all of them
 * need. If the queue is empty before that, it requests hellos from the rejected hubs.
 */
export class HelloQueue {
  readonly #clock: Clock
  readonly #random: Random
  readonly #settings: HelloQueueSettings
  /** By hub, the newest hello last. */
  readonly #waiting = new Map<number, PendingHello>()
  /** The pending hellos, the newest last, among others that are no longer pending. */
  #stack: PendingHello[] = []
  /** The rejected hubs that were not answered since, with the time of their next hello. */
  readonly #awaited = new Map<number, { atMs: number; hail: () => void }>()
  /** The rejected hubs that were asked for a hello, with the time of the request. */
  readonly #recalled = new Map<number, number>()
  #cancelGather: Cancel | undefined
  #cancelRecall: Cancel | undefined
  /** The start times of the running answers. */
  readonly #begun = new Set<{ atMs: number }>()
  /** The hubs of the running answers. */
  readonly #running = new Set<number>()
  #paceMs = FIRST_GUESS_MS
  /**
   * The concurrency. It grows with each fast answer, because concurrent answers share their cost, and shrinks with slow
   * ones.
   */
  #window: number
  #countedMs = 0

  constructor({ clock, random }: { clock: Clock; random: Random }, settings: HelloQueueSettings) {
    this.#clock = clock
    this.#random = random
    this.#settings = settings
    this.#window = settings.greetAtLeast
  }

  /** Time between two answers while hellos wait, in milliseconds; longer while answers hang. */
  get paceMs(): number {
    const [oldest] = this.#begun
    if (!oldest) return this.#paceMs
    return Math.max(this.#paceMs, (this.#clock.monotonic() - oldest.atMs) / this.#atOnce)
  }

  /** The present concurrency. */
  get #atOnce(): number {
    return Math.min(this.#settings.greetAtOnce, this.#window)
  }

  /** A hello arrived: it is answered now or soon, or rejected. It replaces an earlier hello of the hub. */
  enter(hello: PendingHello): void {
    this.#recalled.delete(hello.hubId)
    this.#waiting.delete(hello.hubId)
    this.#waiting.set(hello.hubId, hello)
    // Otherwise its turn begins after the running answer to the hub.
    if (!this.#running.has(hello.hubId)) this.#stack.push(hello)
    if (hello.isPatient) this.#gather()
    else this.#next()
    while (this.#waiting.size * this.paceMs > this.#settings.greetWithinMs) this.#reject()
    if (this.#stack.length > 2 * this.#waiting.size) this.#stack = [...this.#waiting.values()]
  }

  /** The hub's connection has ended: its hello is dropped. */
  leave(hubId: number, session: string): void {
    if (this.#waiting.get(hubId)?.session === session) this.#waiting.delete(hubId)
    this.#awaited.delete(hubId)
    this.#recalled.delete(hubId)
  }

  /** Drops all hellos, because no hub can be answered any more. */
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
      const hello = this.#stack.pop()
      if (!hello) return this.#recall()
      if (this.#waiting.get(hello.hubId) !== hello || this.#running.has(hello.hubId)) continue
      this.#waiting.delete(hello.hubId)
      void this.#answer(hello)
    }
  }

  /** Requests hellos from rejected hubs, the earliest first, at most as many as are answered concurrently. */
  #recall(): void {
    const now = this.#clock.monotonic()
    const { recallMs } = this.#settings
    for (const [hubId, atMs] of this.#recalled) if (now - atMs >= recallMs) this.#recalled.delete(hubId)
    for (const [hubId, { hail }] of this.#awaited) {
      if (this.#begun.size + this.#recalled.size >= this.#atOnce) return
      this.#awaited.delete(hubId)
      this.#recalled.set(hubId, now)
      // If none of them sends a hello, this timer asks the next ones.
      this.#cancelRecall ??= this.#clock.after(recallMs, () => {
        this.#cancelRecall = undefined
        this.#next()
      })
      hail()
    }
  }

  async #answer({ hubId, answer }: PendingHello): Promise<void> {
    this.#awaited.delete(hubId)
    const begun = { atMs: this.#clock.monotonic() }
    this.#begun.add(begun)
    this.#running.add(hubId)
    const together = this.#begun.size
    await answer()
    const atOnce = Math.max(together, this.#begun.size)
    this.#begun.delete(begun)
    this.#running.delete(hubId)
    const next = this.#waiting.get(hubId)
    if (next) this.#stack.unshift(next)
    const tookMs = this.#clock.monotonic() - begun.atMs
    const { greetTogetherMs, greetAtOnce, greetAtLeast } = this.#settings
    // The duration of a single answer says little about the pace of concurrent ones.
    if (atOnce >= Math.min(greetAtLeast, greetAtOnce) || tookMs / atOnce < this.#paceMs)
      this.#paceMs += LATEST * (tookMs / atOnce - this.#paceMs)
    if (tookMs <= greetTogetherMs) this.#window = Math.min(greetAtOnce, this.#window + 1)
    else if (tookMs > 2 * greetTogetherMs) this.#window = Math.max(greetAtLeast, this.#window - 1)
    this.#next()
  }

  /** Rejects the oldest hello. */
  #reject(): void {
    const [hello] = this.#waiting.values()
    if (!hello) return
    this.#waiting.delete(hello.hubId)
    const now = this.#clock.monotonic()
    this.#forgetLost(now)
    const allMs = (this.#waiting.size + this.#awaited.size + 1) * this.paceMs
    const withinMs = Math.min(allMs, this.#settings.greetAgainMs)
    const afterMs = Math.max(LEAST_MS, Math.round(withinMs * this.#random.fraction()))
    this.#awaited.set(hello.hubId, { atMs: now + afterMs, hail: hello.hail })
    hello.reject(afterMs)
  }

  /** Drops rejected hubs that did not return in time: another process has answered them, or they are gone. */
  #forgetLost(now: number): void {
    const { greetAgainMs } = this.#settings
    if (now - this.#countedMs < greetAgainMs) return
    this.#countedMs = now
    for (const [hubId, { atMs }] of this.#awaited) if (now - atMs > greetAgainMs) this.#awaited.delete(hubId)
  }
}
