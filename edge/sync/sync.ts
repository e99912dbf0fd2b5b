import { randomHex } from '../../protocol/model/ids.ts'
import { backoffMs, every, type Cancel, type Clock } from '../../protocol/model/runtime.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { Reach } from '../../protocol/stream/sender.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import { refusalOf } from '../../protocol/mqtt/certificates.ts'
import { isLoginRefused } from '../../protocol/mqtt/connection-problem.ts'
import { Session, type SessionPhase, type SyncOptions } from './session.ts'

export interface SyncState {
  /** `waiting`: until the next attempt. */
  phase: 'stopped' | 'waiting' | Exclude<SessionPhase, 'ended'>
  session: string | null
  /** Milliseconds since the last message of the cloud; null if there was none. */
  receivedMsAgo: number | null
  ledger: SenderPosition
  /** Connections to the broker that ended or failed since the start. */
  connectionsLost?: number
  /** Why the cloud does not answer, as text, and since when (wall clock, milliseconds); undefined while it answers. */
  reason?: string | undefined
  reasonSince?: number | undefined
}

/**
 * The hub's connection to the cloud: one session after another without end, with a back-off between them. The
 * outbox contains everything that must not be lost; a session only transports it.
 */
export class Sync {
  readonly #options: SyncOptions
  readonly #clock: Clock
  readonly #instance: string
  #running = false
  #session: Session | undefined
  #cancelRetry: Cancel | undefined
  #lastReceivedMs: number | undefined
  /** Connections since the cloud's last answer. */
  #attempts = 0
  #connectionsLost = 0
  readonly #outage: RepeatedLine
  readonly #reach = new Reach()
  /** The ledger's acknowledged position, and the connected time in which it has not changed. */
  #still: { epoch: string; base: number; forMs: number }
  #cancelCheck: Cancel | undefined

  constructor(options: SyncOptions) {
    this.#options = options
    this.#clock = options.runtime.clock
    this.#instance = randomHex(options.runtime.random, 16)
    this.#outage = new RepeatedLine({ log: options.log, clock: this.#clock })
    this.#still = { ...options.outbox.position('ledger'), forMs: 0 }
    options.outbox.onAppended((stream) => this.#session?.refresh(stream))
    options.core.onHealthChange(() => this.#session?.healthChanged())
  }

  start(): void {
    if (this.#running) return
    this.#running = true
    this.#cancelCheck = every(this.#clock, this.#options.settings.stalledCheckMs, () => this.#checkProgress())
    this.#connect()
  }

  stop(): void {
    this.#running = false
    this.#cancelCheck?.()
    this.#cancelRetry?.()
    this.#cancelRetry = undefined
    this.#session?.close()
    this.#leave()
  }

  /** The cloud has acknowledged no ledger entry for `stalledMs` although it was connected: the hub takes no orders. */
  isStalled(): boolean {
    return this.#still.forMs >= this.#options.settings.stalledMs
  }

  /** Sends a hello again on the current connection, because the inbox's position has changed. */
  sendHello(): void {
    this.#session?.sendHello()
  }

  state(): SyncState {
    const heard = this.#session?.lastReceivedMs ?? this.#lastReceivedMs
    return {
      phase: this.#running ? this.#phase() : 'stopped',
      session: this.#session?.id ?? null,
      receivedMsAgo: heard === undefined ? null : this.#clock.monotonic() - heard,
      ledger: this.#options.outbox.position('ledger'),
      connectionsLost: this.#connectionsLost,
      ...(this.#running && this.#problem()),
    }
  }

  #connect(): void {
    this.#cancelRetry = undefined
    this.#session = new Session({
      ...this.#options,
      instance: this.#instance,
      reach: this.#reach,
      onEnd: (reason, welcomed) => this.#ended(reason, welcomed),
      onWelcome: () => this.#outage.succeeded({}, 'the cloud answers again'),
    })
  }

  #ended(reason: string, welcomed: boolean): void {
    const { settings, runtime, hubId } = this.#options
    if (welcomed) this.#attempts = 0
    this.#leave()
    this.#connectionsLost += 1
    const delayMs = backoffMs(this.#attempts++, settings.backoff, runtime.random)
    const user = hubUser(hubId)
    if (isLoginRefused(reason)) {
      const { shown, message } = this.#refusedLogin(reason)
      this.#outage.failed(shown, { delayMs, user }, message)
    } else
      this.#outage.failed(
        reason,
        { welcomed, delayMs },
        'no connection to the cloud',
        // It is normal that a working connection ends; a connection that never works is a problem.
        welcomed ? 'info' : 'warn',
      )
    this.#cancelRetry = this.#clock.after(delayMs, () => this.#connect())
  }

  /** The reason of a refused login for people, and the message of the log. Brokers do not report which part is wrong. */
  #refusedLogin(reason: string): { shown: string; message: string } {
    const { hubId, loginCertificate } = this.#options
    const user = hubUser(hubId)
    const certificate = loginCertificate?.()
    if (!certificate)
      return {
        shown: reason,
        message: `the broker lets no ${user} in with this password: MQTT_PASSWORD is not its own, or hubId of HARDWARE is not this hub's number`,
      }
    const time = { clock: this.#clock.now(), proven: this.#options.provenTime?.() ?? 0 }
    const advice = 'enrol the hub again with a new claim code (larder enroll, or the page of the hub)'
    const shown = `the broker refuses the certificate of this hub: ${refusalOf(certificate.endsAt, user, time)}`
    return { shown, message: `${shown}: ${advice}` }
  }

  /** Heartbeats may arrive where batches do not. Time without a connection does not count. */
  #checkProgress(): void {
    const { outbox, settings, core, log } = this.#options
    const { epoch, base, last } = outbox.position('ledger')
    const wasStalled = this.isStalled()
    const isStill = base < last && base === this.#still.base && epoch === this.#still.epoch
    const passedMs = this.#phase() === 'welcomed' ? settings.stalledCheckMs : 0
    this.#still = { epoch, base, forMs: isStill ? this.#still.forMs + passedMs : 0 }
    if (this.isStalled() === wasStalled) return
    if (wasStalled) log.info({ base }, 'the cloud acknowledges what the hub reports again')
    else log.error({ base, last }, 'the cloud acknowledges nothing that the hub reports: no orders are taken')
    core.noteStall?.()
  }

  /** Why the cloud does not answer now, and since when. */
  #problem(): { reason: string; reasonSince: number } | undefined {
    const { settings } = this.#options
    const since = (ms: number): number => this.#clock.now() - Math.round(ms)
    const unansweredMs = this.#session?.unansweredMs ?? 0
    if (unansweredMs >= settings.unansweredMs)
      return {
        reason:
          'the broker is connected, but the cloud does not answer: it is down, or it does not hear this hub',
        reasonSince: since(unansweredMs),
      }
    const { failing } = this.#outage
    if (failing) return { reason: failing.reason, reasonSince: failing.since }
    if (this.isStalled())
      return {
        reason:
          'the cloud acknowledges nothing that the hub reports, so no orders are taken: the network may drop large packets',
        reasonSince: since(this.#still.forMs),
      }
    const quietMs =
      this.#phase() === 'welcomed' ? this.#clock.monotonic() - (this.#session?.lastReceivedMs ?? 0) : 0
    if (quietMs < 2 * settings.quietMs) return undefined
    return { reason: 'the cloud is silent though the broker is connected', reasonSince: since(quietMs) }
  }

  #phase(): SyncState['phase'] {
    return this.#session === undefined || this.#session.phase === 'ended' ? 'waiting' : this.#session.phase
  }

  #leave(): void {
    this.#lastReceivedMs = this.#session?.lastReceivedMs ?? this.#lastReceivedMs
    this.#session = undefined
  }
}
