import { randomHex } from '../../protocol/model/ids.ts'
import { backoffMs, every, type Cancel } from '../../protocol/model/runtime.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { Reach } from '../../protocol/stream/reach.ts'
import { RepeatedLine } from '../../protocol/model/repeated-lines.ts'
import { isLoginRefused } from '../../protocol/mqtt/connection-problem.ts'
import { Session, type SessionPhase, type SyncOptions } from './session.ts'

export interface SyncState {
  /** `waiting`: for the next attempt. */
  phase: 'stopped' | 'waiting' | Exclude<SessionPhase, 'ended'>
  session: string | null
  /** How long ago the cloud was last heard, milliseconds; null where it never was. */
  heardMsAgo: number | null
  ledger: SenderPosition
  /** Connections to the broker that ended or failed since the start. */
  connectionsLost?: number
  /** Why the cloud does not answer, in words, and since when (wall clock, milliseconds); undefined while it answers. */
  reason?: string | undefined
  reasonSince?: number | undefined
}

export type Sync = ReturnType<typeof createSync>

/**
 * The hub's end of the line to the cloud: one session after another, for ever, with a back-off between them. Everything
 * that must not be lost is in the outbox; a session only carries it.
 */
export function createSync(options: SyncOptions) {
  const { runtime, log, outbox, core, settings } = options
  const { clock } = runtime
  const instance = randomHex(runtime.random, 16)
  let running = false
  let session: Session | undefined
  let cancelRetry: Cancel | undefined
  let lastHeardMs: number | undefined
  /** Connections since the cloud last answered. */
  let attempts = 0
  let connectionsLost = 0
  const outage = new RepeatedLine({ log, clock })
  const reach = new Reach()
  /** Where the ledger's acknowledgement stands, and for how long it has not moved while the cloud was connected. */
  let still = { ...outbox.position('ledger'), forMs: 0 }
  let cancelCheck: Cancel | undefined

  outbox.onAppended((stream) => session?.refresh(stream))
  core.onHealthChange(() => session?.healthChanged())

  function connect(): void {
    cancelRetry = undefined
    session = new Session({ ...options, instance, reach, onEnd, onWelcome })
  }

  function onEnd(reason: string, welcomed: boolean): void {
    if (welcomed) attempts = 0
    leave()
    connectionsLost += 1
    const delayMs = backoffMs(attempts++, settings.backoff, runtime.random)
    const user = hubUser(options.hubId)
    if (isLoginRefused(reason))
      outage.failed(
        reason,
        { delayMs, user },
        `the broker lets no ${user} in with this password: MQTT_PASSWORD is not its own, or hubId of HARDWARE is not this hub's number`,
      )
    else
      outage.failed(
        reason,
        { welcomed, delayMs },
        'no connection to the cloud',
        // A connection that worked and ended is ordinary; one that never works is not.
        welcomed ? 'info' : 'warn',
      )
    cancelRetry = clock.after(delayMs, connect)
  }

  function onWelcome(): void {
    outage.succeeded({}, 'the cloud answers again')
  }

  const isStalled = (): boolean => still.forMs >= settings.stalledMs

  /** Heartbeats may pass where no batch does. Time without a connection does not count. */
  function checkProgress(): void {
    const { epoch, base, last } = outbox.position('ledger')
    const wasStalled = isStalled()
    const isStill = base < last && base === still.base && epoch === still.epoch
    const forMs = !isStill ? 0 : phase() === 'welcomed' ? still.forMs + settings.stalledCheckMs : still.forMs
    still = { ...still, epoch, base, forMs }
    if (isStalled() === wasStalled) return
    if (wasStalled) log.info({ base }, 'the cloud acknowledges what the hub reports again')
    else log.error({ base, last }, 'the cloud acknowledges nothing that the hub reports: no orders are taken')
    core.noteStall?.()
  }

  /** Why the cloud does not answer now, and since when. */
  function problem(): { reason: string; reasonSince: number } | undefined {
    const since = (ms: number): number => clock.now() - Math.round(ms)
    const unansweredMs = session?.unansweredMs ?? 0
    if (unansweredMs >= settings.unansweredMs)
      return {
        reason:
          'the broker is connected, but the cloud does not answer: it is down, or it does not hear this hub',
        reasonSince: since(unansweredMs),
      }
    const { failing } = outage
    if (failing) return { reason: failing.reason, reasonSince: failing.since }
    if (isStalled())
      return {
        reason:
          'the cloud acknowledges nothing that the hub reports, so no orders are taken: the network may drop large packets',
        reasonSince: since(still.forMs),
      }
    const quietMs = phase() === 'welcomed' ? clock.monotonic() - (session?.lastHeardMs ?? 0) : 0
    if (quietMs < 2 * settings.quietMs) return undefined
    return { reason: 'the cloud is silent though the broker is connected', reasonSince: since(quietMs) }
  }

  const phase = (): SyncState['phase'] =>
    session === undefined || session.phase === 'ended' ? 'waiting' : session.phase

  function leave(): void {
    lastHeardMs = session?.lastHeardMs ?? lastHeardMs
    session = undefined
  }

  return {
    start(): void {
      if (running) return
      running = true
      cancelCheck = every(clock, settings.stalledCheckMs, checkProgress)
      connect()
    },
    stop(): void {
      running = false
      cancelCheck?.()
      cancelRetry?.()
      cancelRetry = undefined
      session?.close()
      leave()
    },
    /** The cloud has acknowledged nothing of the ledger for `stalledMs`, though it was connected: the hub takes no orders. */
    isStalled,
    /** Says hello again on the present connection: where the inbox stands has changed. */
    sayHello(): void {
      session?.sayHello()
    },
    state(): SyncState {
      const heard = session?.lastHeardMs ?? lastHeardMs
      return {
        phase: running ? phase() : 'stopped',
        session: session?.id ?? null,
        heardMsAgo: heard === undefined ? null : clock.monotonic() - heard,
        ledger: outbox.position('ledger'),
        connectionsLost,
        ...(running && problem()),
      }
    },
  }
}
