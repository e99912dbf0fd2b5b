import { randomHex } from '../../protocol/model/ids.ts'
import { backoffMs, type Cancel } from '../../protocol/model/runtime.ts'
import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { Session, type SessionPhase, type SyncOptions } from './session.ts'

/** As mqtt.js says that the broker knows no such user, or no such password: brokers do not tell which. */
const REFUSED = /^Connection refused: (Not authorized|Bad username or password|Identifier rejected)/

export interface SyncState {
  /** `waiting`: for the next attempt. */
  phase: 'stopped' | 'waiting' | Exclude<SessionPhase, 'ended'>
  session: string | null
  /** How long ago the cloud was last heard, milliseconds; null where it never was. */
  heardMsAgo: number | null
  ledger: SenderPosition
}

/** Connections in a row without a word of the cloud, after which the log is raised. */
const LOUD_AFTER = 4

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

  outbox.onAppended((stream) => session?.refresh(stream))
  core.onHealthChange(() => session?.healthChanged())

  function connect(): void {
    cancelRetry = undefined
    session = new Session({ ...options, instance, onEnd })
  }

  function onEnd(reason: string, welcomed: boolean): void {
    if (welcomed) attempts = 0
    leave()
    const delayMs = backoffMs(attempts++, settings.backoff, runtime.random)
    if (REFUSED.test(reason))
      log.warn(
        { reason, delayMs, user: hubUser(options.hubId) },
        `the broker lets no ${hubUser(options.hubId)} in with this password: MQTT_PASSWORD is not its own, or hubId of HARDWARE is not this hub's number`,
      )
    // One that fails again and again is not the weather: another hub with this identity.
    else
      log[attempts > LOUD_AFTER ? 'warn' : 'info'](
        { reason, welcomed, delayMs },
        'no connection to the cloud',
      )
    cancelRetry = clock.after(delayMs, connect)
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
      connect()
    },
    stop(): void {
      running = false
      cancelRetry?.()
      cancelRetry = undefined
      session?.close()
      leave()
    },
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
      }
    },
  }
}
