import { every } from '../../protocol/model/runtime.ts'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'

/** What a connection says again and again: hello until the cloud answers, and heartbeats. */

export interface HelloTimes {
  helloMs: number
  hailMs: number
  quietMs: number
}

/** Times the hellos of one connection. `send` sends one; `monotonic` identifies it, and the cloud's answer names it. */
export class Hellos {
  readonly #clock: Clock
  readonly #times: HelloTimes
  readonly #send: (monotonic: number) => void
  #latestMs = -Infinity
  #cancel: Cancel | undefined

  constructor(clock: Clock, times: HelloTimes, send: (monotonic: number) => void) {
    this.#clock = clock
    this.#times = times
    this.#send = send
  }

  /** Says hello now, and again every `helloMs` until `answered`. */
  say(): void {
    this.#cancel?.()
    // Strictly later than the one before: the cloud's answer names it.
    this.#latestMs = Math.max(this.#clock.monotonic(), this.#latestMs + 0.001)
    this.#send(this.#latestMs)
    this.#cancel = this.#clock.after(this.#times.helloMs, () => this.say())
  }

  /** Says hello at once, or as soon as the last one is `hailMs` old. */
  saySoon(): void {
    const waitMs = this.#latestMs + this.#times.hailMs - this.#clock.monotonic()
    if (waitMs <= 0) return this.say()
    this.#cancel?.()
    this.#cancel = this.#clock.after(waitMs, () => this.say())
  }

  isLatest(monotonic: number): boolean {
    return monotonic === this.#latestMs
  }

  /** The cloud has answered. Says hello again when it has been silent for `quietMs`: its process may have died. */
  answered(lastHeardMs: () => number): void {
    this.#cancel?.()
    const quietForMs = this.#clock.monotonic() - lastHeardMs()
    if (quietForMs >= this.#times.quietMs) return this.say()
    this.#cancel = this.#clock.after(this.#times.quietMs - quietForMs, () => this.answered(lastHeardMs))
  }

  stop(): void {
    this.#cancel?.()
  }
}

/** Calls `beat` every `heartbeatMs`, and `healthMs` after a change: one beat for all changes until then. */
export class Heartbeat {
  readonly #clock: Clock
  readonly #times: { heartbeatMs: number; healthMs: number }
  readonly #beat: () => void
  #cancelSeries: Cancel | undefined
  #cancelSoon: Cancel | undefined

  constructor(clock: Clock, times: { heartbeatMs: number; healthMs: number }, beat: () => void) {
    this.#clock = clock
    this.#times = times
    this.#beat = beat
  }

  /** Beats for the first time, and from then on. */
  start(): void {
    this.#cancelSeries = every(this.#clock, this.#times.heartbeatMs, this.#beat)
    this.#beat()
  }

  /** What it reports has changed. */
  changed(): void {
    this.#cancelSoon ??= this.#clock.after(this.#times.healthMs, () => {
      this.#cancelSoon = undefined
      this.#beat()
    })
  }

  stop(): void {
    this.#cancelSeries?.()
    this.#cancelSoon?.()
  }
}
