import { backoffMs, type BackoffOptions, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'

/** What a connection says again and again: hello until the cloud answers, and heartbeats. */

export interface HelloTimes {
  /** The pauses between hellos that nothing answers. */
  hello: BackoffOptions
  hailMs: number
  quietMs: number
  laterMs: number
}

/** The part of a time by which hubs that were told the same differ. */
const SPREAD = 0.1

/** Times the hellos of one connection. `send` sends one; `monotonic` identifies it, and the cloud's answer names it. */
export class Hellos {
  readonly #runtime: Runtime
  readonly #times: HelloTimes
  readonly #send: (monotonic: number) => void
  #latestMs = -Infinity
  /** Hellos since the last answer. */
  #attempt = 0
  #cancel: Cancel | undefined

  constructor(runtime: Runtime, times: HelloTimes, send: (monotonic: number) => void) {
    this.#runtime = runtime
    this.#times = times
    this.#send = send
  }

  /** Says hello now, and again, less and less often, until `answered`. */
  say(): void {
    // Strictly later than the one before: the cloud's answer names it.
    this.#latestMs = Math.max(this.#runtime.clock.monotonic(), this.#latestMs + 0.001)
    this.#send(this.#latestMs)
    this.sayAgain()
  }

  /** Says hello after a pause: it has not been answered, or nothing could be made of the answer. */
  sayAgain(): void {
    const { hello } = this.#times
    this.#sayAfter(backoffMs(this.#attempt++, hello, this.#runtime.random))
  }

  /** Says hello at once, or as soon as the last one is `hailMs` old. */
  saySoon(): void {
    const waitMs = this.#untilHail()
    if (waitMs <= 0) return this.say()
    this.#sayAfter(waitMs)
  }

  /** The cloud has no time for it now. */
  sayLater(afterMs: number): void {
    const { hailMs, laterMs } = this.#times
    this.#sayAfter(this.#spread(Math.min(laterMs, Math.max(hailMs, afterMs))))
  }

  /** The cloud has answered. Says hello again when it has been silent for `quietMs`: its process may have died. */
  answered(lastHeardMs: () => number): void {
    this.#cancel?.()
    this.#attempt = 0
    const quietMs = this.#spread(this.#times.quietMs)
    const look = (): void => {
      const leftMs = lastHeardMs() + quietMs - this.#runtime.clock.monotonic()
      if (leftMs <= 0) this.say()
      else this.#cancel = this.#runtime.clock.after(leftMs, look)
    }
    look()
  }

  stop(): void {
    this.#cancel?.()
  }

  #sayAfter(delayMs: number): void {
    this.#cancel?.()
    this.#cancel = this.#runtime.clock.after(delayMs, () => this.say())
  }

  #untilHail(): number {
    return this.#latestMs + this.#times.hailMs - this.#runtime.clock.monotonic()
  }

  #spread(ms: number): number {
    return ms * (1 + SPREAD * this.#runtime.random.fraction())
  }
}

export interface HeartbeatTimes {
  heartbeatMs: number
  healthMs: number
}

/**
 * Calls `beat` every `heartbeatMs`, a tenth more or less, so that hubs that came together do not beat together for ever;
 * and `healthMs` after a change: one beat for all changes until then.
 */
export class Heartbeat {
  readonly #runtime: Runtime
  readonly #times: HeartbeatTimes
  readonly #beat: () => void
  #cancelSeries: Cancel | undefined
  #cancelSoon: Cancel | undefined

  constructor(runtime: Runtime, times: HeartbeatTimes, beat: () => void) {
    this.#runtime = runtime
    this.#times = times
    this.#beat = beat
  }

  /** Beats for the first time, and from then on. */
  start(): void {
    if (this.#cancelSeries) return
    this.#arm()
    this.#beat()
  }

  /** What it reports has changed. Before the start nobody has been told anything. */
  changed(): void {
    if (!this.#cancelSeries) return
    this.#cancelSoon ??= this.#runtime.clock.after(this.#times.healthMs, () => {
      this.#cancelSoon = undefined
      this.#beat()
    })
  }

  stop(): void {
    this.#cancelSeries?.()
    this.#cancelSoon?.()
  }

  #arm(): void {
    const { clock, random } = this.#runtime
    const periodMs = this.#times.heartbeatMs * (1 + SPREAD * (2 * random.fraction() - 1))
    this.#cancelSeries = clock.after(periodMs, () => {
      // Armed first: a beat that throws must not end the series.
      this.#arm()
      this.#beat()
    })
  }
}
