import type Database from 'better-sqlite3'
import { ApplyError, createInbox } from '../../../edge/journal/inbox.ts'
import { JournalOutbox } from '../../../edge/journal/outbox.ts'
import type { Outbox } from '../../../edge/journal/outbox.ts'
import type { Inbox } from '../../../edge/journal/inbox.ts'
import { openStore } from '../../../edge/journal/store.ts'
import { defaultSyncSettings } from '../../../protocol/settings/hub-limits.ts'
import { Sync } from '../../../edge/sync/sync.ts'
import type { SyncCore } from '../../../edge/sync/session.ts'
import type { Log } from '../../../protocol/model/log.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import type { HubEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { HubHealth } from '../../../protocol/model/hub-health.ts'
import type { OpenTransport } from '../../../protocol/mqtt/transport.ts'
import type { VirtualClock } from '../../world/clock.ts'
import type { Line } from './line.ts'

export class Crash extends Error {}

/**
 * The stream, outbox, inbox and a minimal core, from a start to a stop or a crash, on a database that
 * survives.
 */
export interface HubLife {
  sync: Sync
  outbox: Outbox
  inbox: Inbox
  /** Reports an alarm with this detail in the ledger. */
  report(detail: string): void
  executed: string[]
  /** The cloud's time in its welcomes and later messages. */
  offsets: number[]
  heard: number[]
  /** Kinds of messages from the cloud, in order. */
  order: ('clock' | 'entry')[]
  warnings: string[]
  /** For each requested new epoch of the ledger: whether the cloud is ahead of this store. */
  restarts: ('ahead' | undefined)[]
  /** The certificate with which the hub logs in. */
  certificate: { endsAt: number } | undefined
  /** A time that has passed, whatever the board's clock shows. */
  provenTime: number
  /** The core finds no space for a new epoch. */
  isDiskFull: boolean
  changeHealth(): void
  /** Passing the point `crashAt` causes a crash. */
  gate: { alive: boolean; crashAt: string | undefined }
  /** Crashes at once. */
  kill(): void
}

export const alarm = (detail: string): HubEntry => ({
  kind: 'alarm',
  at: 1,
  code: 'door_forced',
  subject: 'door main',
  raised: true,
  detail,
})

const health: HubHealth = { accepting_orders: true, bins: [], fridges: [], doors: [], unknown_operations: 0 }

/** Ids of the orders that entries of the cloud cancelled, in the order of their application. */
const numberOf = (orderId: string): number => Number(orderId.slice(-12))

export const effectsIn = (db: Database.Database): number[] =>
  db.prepare<[], number>('SELECT n FROM effects ORDER BY rowid').pluck().all()

export function startHub(
  db: Database.Database,
  line: Line,
  runtime: Runtime & { clock: VirtualClock },
  settings = defaultSyncSettings,
  isOnTrial = (): boolean => false,
): HubLife {
  const { clock } = runtime
  const gate: { alive: boolean; crashAt: string | undefined } = { alive: true, crashAt: undefined }
  const warnings: string[] = []
  const mine: Runtime = {
    random: runtime.random,
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (delayMs, task) => clock.after(delayMs, () => gate.alive && task()),
    },
  }
  const checkpoint = (point: string): void => {
    if (!gate.alive || gate.crashAt !== point) return
    gate.alive = false
    line.abandon()
    throw new Crash(point)
  }
  const warn = (_: object, message: string): void => void warnings.push(message)
  const log: Log = { debug() {}, info() {}, warn, error: warn }
  const store = openStore({ path: '', database: db, checkpoint, log })
  db.exec('CREATE TABLE IF NOT EXISTS effects (n INTEGER)')
  const outbox = new JournalOutbox(store, mine)
  const inbox = createInbox(store, mine, log)
  let onHealth = (): void => {}
  const core: SyncCore = {
    applyCloudEntry(body) {
      life.order.push('entry')
      const entry = CloudEntry.parse(body)
      if (entry.kind !== 'order.cancel') return
      db.prepare('INSERT INTO effects VALUES (?)').run(numberOf(entry.order_id))
      if (numberOf(entry.order_id) === 13) throw new ApplyError('invalid', 'unlucky')
    },
    execute(command, reply) {
      life.executed.push(command.command_id)
      const { command_id, session } = command
      reply({ command_id, session, outcome: 'executed', reason: null, data: null })
    },
    health: () => health,
    onHealthChange(listener) {
      onHealth = listener
    },
    setCloudClock(offset, { passing }) {
      if (!passing) return void life.offsets.push(offset)
      life.heard.push(offset)
      life.order.push('clock')
    },
    restartLedger(_, cloud) {
      life.restarts.push(cloud)
      if (life.isDiskFull) return false
      store.transact(() => {
        outbox.newEpoch('ledger')
        outbox.append('ledger', { kind: 'snapshot', at: 1, stock: [], states: [], alarms: [] })
      })
      return true
    },
  }
  const openTransport: OpenTransport = line.transportFor(() => gate.alive)
  const sync = new Sync({
    runtime: mine,
    log,
    hubId: 1,
    openTransport,
    outbox,
    inbox,
    core,
    software: 'test 1',
    loginCertificate: () => life.certificate,
    provenTime: () => life.provenTime,
    isOnTrial,
    checkpoint,
    settings,
  })
  const life: HubLife = {
    sync,
    outbox,
    inbox,
    report: (detail) => outbox.append('ledger', alarm(detail)),
    executed: [],
    offsets: [],
    heard: [],
    order: [],
    warnings,
    restarts: [],
    certificate: undefined,
    provenTime: 0,
    isDiskFull: false,
    changeHealth: () => onHealth(),
    gate,
    kill() {
      gate.alive = false
      line.abandon()
    },
  }
  sync.start()
  return life
}
