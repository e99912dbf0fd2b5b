import {
  backoffMs,
  type BackoffOptions,
  type Cancel,
  type Runtime,
  type Clock,
} from '../../protocol/model/runtime.ts'
import { isNoticeable } from '../../protocol/model/vitals.ts'
import type { Heartbeat as HeartbeatMessage } from '../../protocol/mqtt/session.ts'

/** Times of a connection's repeated messages: hello until the cloud answers, and heartbeats. */

interface HelloTimes {
  /** The pauses between unanswered hellos. */
  hello: BackoffOptions
  hailMs: number
  quietMs: number
  laterMs: number
}

/** The fraction by which equal times of different hubs are spread. */
const SPREAD = 0.1

/**
 * Times the hellos of one connection. `send` sends one. `monotonic` identifies the hello, and the cloud's
 * answer contains it.
 */
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

  /** Sends hello now, and again at growing intervals until `answered`. */
  say(): void {
    // Strictly later than the previous hello, because the cloud's answer identifies the hello by it.
    this.#latestMs = Math.max(this.#runtime.clock.monotonic(), this.#latestMs + 0.001)
    this.#send(this.#latestMs)
    this.sendAgain()
  }

  /** Sends hello after a pause: it was not answered, or the answer could not be processed. */
  sendAgain(): void {
    const { hello } = this.#times
    this.#sendAfter(backoffMs(this.#attempt++, hello, this.#runtime.random))
  }

  /** Sends hello at once, or as soon as the last hello is `hailMs` old. */
  sendSoon(): void {
    const waitMs = this.#untilHail()
    if (waitMs <= 0) return this.say()
    this.#sendAfter(waitMs)
  }

  /** The cloud is too busy now and requests a later hello. */
  sendLater(afterMs: number): void {
    const { hailMs, laterMs } = this.#times
    this.#sendAfter(this.#spread(Math.min(laterMs, Math.max(hailMs, afterMs))))
  }

  /**
   * The cloud has answered. Sends hello again when the cloud has been silent for `quietMs`: its process may
   * have died.
   */
  answered(lastReceivedMs: () => number): void {
    this.#cancel?.()
    this.#attempt = 0
    const quietMs = this.#spread(this.#times.quietMs)
    const check = (): void => {
      const leftMs = lastReceivedMs() + quietMs - this.#runtime.clock.monotonic()
      if (leftMs <= 0) this.say()
      else this.#cancel = this.#runtime.clock.after(leftMs, check)
    }
    check()
  }

  stop(): void {
    this.#cancel?.()
  }

  #sendAfter(delayMs: number): void {
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

interface HeartbeatTimes {
  heartbeatMs: number
  healthMs: number
}

/**
 * Calls `beat` every `heartbeatMs` ± 10 %, so that hubs that connected together do not send their heartbeats
 * together. Also calls it `healthMs` after a change of health, once for all changes until then.
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

  /** Sends the first heartbeat, and starts the series. */
  start(): void {
    if (this.#cancelSeries) return
    this.#arm()
    this.#beat()
  }

  /** The health has changed. Before the start no heartbeat was sent, so none is due. */
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
      // The next beat is scheduled first: a beat that throws must not end the series.
      this.#arm()
      this.#beat()
    })
  }
}

/** Time after which unchanged figures are reported again, because a heartbeat may be lost. */
const AGAIN_MS = 5 * 60_000

/** Reads the figures of one connection's heartbeats, and returns them if they are due (SPEC §13). */
export function vitalsDue(
  clock: Clock,
  read: (() => HeartbeatMessage['vitals']) | undefined,
): () => HeartbeatMessage['vitals'] {
  let reported: { vitals: NonNullable<HeartbeatMessage['vitals']>; atMs: number } | undefined
  return () => {
    const vitals = read?.()
    if (!vitals) return undefined
    const atMs = clock.monotonic()
    if (reported && atMs - reported.atMs < AGAIN_MS && !isNoticeable(reported.vitals, vitals))
      return undefined
    reported = { vitals, atMs }
    return vitals
  }
}
