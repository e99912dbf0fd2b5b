import type BetterSqlite3 from 'better-sqlite3'
import { createHub, type Hub } from '../../edge/hub.ts'
import type { FacingStock } from '../../edge/core/hub-core.ts'
import { StorageError, storageReasonOf } from '../../edge/journal/storage-error.ts'
import { openStore } from '../../edge/journal/store.ts'
import { createRunner, type Runner, type Running } from '../../edge/runner.ts'
import { startWaiting } from '../../edge/waiting.ts'
import { defaultHubSettings, type HubSettings } from '../../edge/settings.ts'
import { collectHub } from '../invariants/collect-hub.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { StorageReason } from '../../protocol/model/storage.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import type { CrashPoints } from './crash-points.ts'
import { hardwareOf } from './hardware.ts'
import type { Network } from './network.ts'
import type { Room } from './room.ts'
import type { Life, Scheduler } from './scheduler.ts'
import { LineWitness } from './line-witness.ts'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'

interface Parts {
  scheduler: Scheduler
  network: Network
  room: Room
  chance: Chance
  coverage: Coverage
  crashPoints: CrashPoints
  hubId?: number
  settings?: HubSettings
  /** A copy of the card of another board, with which this one starts. */
  card?: Buffer
}

/** An entry of a ledger stream, which no other history has. */
export interface LedgerPlace {
  epoch: string
  cursor: number
  tag: number
}

const sqliteErrors: Partial<Record<StorageReason, [code: string, message: string]>> = {
  read_only: ['SQLITE_READONLY', 'attempt to write a readonly database'],
  io_error: ['SQLITE_IOERR_WRITE', 'disk I/O error'],
  locked: ['SQLITE_BUSY', 'database is locked'],
}

const isStorageError = (error: unknown): boolean =>
  error instanceof StorageError || error instanceof Sqlite.SqliteError

/** A hub that ends because of its card may fail to write its last words. */
function ifCardWorks(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isStorageError(error)) throw error
  }
}

/** The hub's service over its lives, on one journal that outlives them. */
export class HubNode {
  readonly #parts: Parts
  #journal: BetterSqlite3.Database
  #copy: Buffer | undefined
  #life: Life | undefined
  #hub: Hub | undefined
  #runner: Runner<Running> | undefined
  #fault: StorageReason | undefined
  /** Milliseconds by which its wall clock is wrong. */
  #wallOffset = 0
  heldDown = false
  /** What it knows of certificates, and when they end by the wall clock. */
  certificates: readonly { name: string; endsAt: number }[] = []
  /** Another board stands in its place. */
  takenOut = false
  /** How many stores it has had: another one knows nothing of what the former had withheld. */
  generation = 0
  readonly hubId: number
  readonly line: LineWitness
  /** Operations that commands caused, over all stores. */
  readonly commandOfOperation = new Map<string, string>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#journal = new Sqlite(parts.card ?? ':memory:')
    this.hubId = parts.hubId ?? 1
    this.line = new LineWitness(this.hubId)
  }

  /** As its line to the broker is called. */
  get name(): string {
    const { hubId } = this
    return this.#parts.card ? `copy of hub-${hubId}` : `hub-${hubId}`
  }

  get hub(): Hub | undefined {
    return this.#life?.alive === true && this.#runner?.phase()?.kind === 'running' ? this.#hub : undefined
  }

  /** What its service says of its rows; of one that is down, what it would have said last. */
  get stock(): FacingStock[] | undefined {
    return this.#hub?.core.stock()
  }

  get journal(): BetterSqlite3.Database {
    return this.#journal
  }

  start(): void {
    const { scheduler, network, room, chance, coverage, crashPoints } = this.#parts
    if (this.heldDown || this.takenOut || this.#life?.alive === true) return
    const { name, hubId } = this
    const life = scheduler.newLife(name, () => {
      coverage.hit('hub lives ended')
      room.unplug(life)
      network.cut((one) => one === life, 'process gone')
      if (this.#journal.inTransaction) this.#journal.exec('ROLLBACK')
      room.plan(chance.between(200, 6000), () => this.start())
    })
    this.#life = life
    scheduler.plan(life, 0, () => {
      const crash = crashPoints.forLife(life)
      const checkpoint = (point: string): void => {
        this.#touchCard(point)
        if (point !== 'journal.begin') crash(point)
      }
      const clock = scheduler.clock(life, () => this.#wallOffset)
      const hardware = hardwareOf(hubId)
      const settings = this.#parts.settings ?? defaultHubSettings
      const gpio = room.gpioFor(life)
      const openTransport = this.line.tap(network.transportFor(name, life, `hub-${hubId}`), clock)
      const runner = createRunner({
        runtime: { clock, random: chance },
        log: silentLog,
        path: 'hub.sqlite',
        retry: settings.storage,
        open: (runtime) => {
          if (this.#fault !== undefined) throw new StorageError(this.#fault, 'the card fails')
          const database = this.#journal
          if (database.inTransaction) database.exec('ROLLBACK')
          const store = openStore({ path: ':memory:', database, hubId, checkpoint, log: silentLog })
          const hub = createHub({
            runtime,
            log: silentLog,
            store,
            hardware,
            openPort: room.portsFor(life, (operationId) => this.#isCommitted(operationId)),
            gpio,
            openTransport,
            checkpoint,
            settings,
            certificates: () => this.certificates,
          })
          this.#hub = hub
          hub.start()
          return {
            hub,
            onLost: (listener) => store.onLost(listener),
            stop: () => ifCardWorks(() => hub.stop()),
          }
        },
        wait: (runtime, fault) => {
          coverage.hit(`hub waits: ${fault().reason}`)
          const parts = { hardware, gpio, openTransport, settings, software: 'larder-edge' }
          return startWaiting({ runtime, log: silentLog, ...parts, fault })
        },
        onChange() {},
        onRefused(error) {
          throw error
        },
      })
      this.#runner = runner
      life.survives = (error) => {
        const reason = isStorageError(error) ? storageReasonOf(error) : undefined
        if (reason === undefined || reason === 'full') return false
        runner.lose(new StorageError(reason, String(error)))
        return true
      }
      runner.start()
    })
  }

  /** The card fails in this way from now on; undefined: it works again. Returns what mends it. */
  failStorage(fault: StorageReason | undefined): () => void {
    this.#fault = fault
    return () => void (this.#fault = undefined)
  }

  /** Somebody puts another hub's card in. Returns what puts the own one back. */
  swapJournal(): () => void {
    const own = this.#journal
    const foreign = new Sqlite(':memory:')
    const hubId = this.hubId + 1
    openStore({ path: ':memory:', database: foreign, hubId, checkpoint: noCheckpoint, log: silentLog })
    this.kill('another card')
    this.#journal = foreign
    return () => {
      this.kill('the own card')
      this.#journal = own
    }
  }

  /** At any commit: before it, or when it has happened and its answer is lost. */
  #touchCard(point: string): void {
    if (this.#fault === undefined || !point.startsWith('journal.')) return
    const [code, message] = sqliteErrors[this.#fault] ?? ['SQLITE_IOERR_WRITE', 'disk I/O error']
    throw new Sqlite.SqliteError(message, code)
  }

  kill(reason = 'SIGKILL'): void {
    if (this.#life) this.#parts.scheduler.kill(this.#life, reason)
  }

  /** The wall clock jumps; a board without a battery may wake up in 1970. */
  shiftWall(offsetMs: number): void {
    this.#wallOffset = offsetMs
  }

  /** The card breaks, and a new one is put in. */
  loseStore(): void {
    this.kill('new card')
    this.noteCommands()
    this.generation++
    this.#journal = new Sqlite(':memory:')
  }

  backUp(): void {
    this.#copy = this.card() ?? this.#copy
  }

  /** What is on its card, or undefined while it is being written to. */
  card(): Buffer | undefined {
    return this.#journal.inTransaction ? undefined : this.#journal.serialize()
  }

  /** The store goes back to its last copy. False where there is none. */
  restore(): boolean {
    if (!this.#copy) return false
    this.kill('restored')
    this.noteCommands()
    this.generation++
    this.#journal = new Sqlite(this.#copy)
    return true
  }

  /** It runs, and nothing is under way: no order, no operation, no entry that the cloud has not acknowledged. */
  isQuiet(): boolean {
    if (this.heldDown || this.takenOut || !this.#hasBegun()) return false
    const { orders, open, pending } = collectHub(this.#journal)
    return open.length === 0 && pending === 0 && orders.every(({ finished }) => finished)
  }

  /** How far its ledger stream has come, where the cloud has acknowledged all that there is to report. */
  toldUpTo(): LedgerPlace | undefined {
    if (!this.#hasBegun() || collectHub(this.#journal).pending > 0) return undefined
    return this.#journal
      .prepare<[], LedgerPlace>(
        "SELECT epoch, base AS cursor, base_tag AS tag FROM stream_positions WHERE stream = 'ledger'",
      )
      .get()
  }

  /** How far it has taken in what the cloud tells it. Another board that runs with a copy of its card may be ahead of it. */
  heardUpTo(): { epoch: string | null; cursor: number } | undefined {
    if (!this.#hasTable('inbox_position')) return undefined
    return this.#journal
      .prepare<[], { epoch: string | null; cursor: number }>('SELECT epoch, cursor FROM inbox_position')
      .get()
  }

  /** Whether it knows an order, by its UUID, and has not begun it. */
  hasYetToBegin(orderId: string): boolean {
    if (!this.#hasTable('orders')) return false
    return (
      this.#journal.prepare("SELECT 1 FROM orders WHERE id = ? AND phase = 'queued'").get(orderId) !==
      undefined
    )
  }

  /** Its journal knows a board on this line. */
  knowsBoard(controller: string): boolean {
    if (!this.#hasTable('controllers')) return false
    return this.#journal.prepare('SELECT 1 FROM controllers WHERE id = ?').get(controller) !== undefined
  }

  /** A new card is blank until the service has started on it. */
  #hasBegun(): boolean {
    return this.#hasTable('stream_positions')
  }

  #hasTable(name: string): boolean {
    return this.#journal.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(name) !== undefined
  }

  #isCommitted(operationId: string): boolean {
    if (this.#journal.inTransaction) return false
    return this.#journal.prepare('SELECT 1 FROM operations WHERE id = ?').get(operationId) !== undefined
  }

  /** Takes down which command each operation was for, before the journal that says so is gone. */
  noteCommands(): void {
    if (!this.#hasTable('operations')) return
    const rows = this.#journal
      .prepare<[], { id: string; command_id: string }>(
        'SELECT id, command_id FROM operations WHERE command_id IS NOT NULL',
      )
      .all()
    for (const row of rows) this.commandOfOperation.set(row.id, row.command_id)
  }

  /** No page can be added to the store for a while. */
  fillDisk(full: boolean): void {
    const pages = this.#journal.pragma('page_count', { simple: true }) as number
    this.#journal.pragma(`max_page_count = ${full ? pages : 1_000_000}`)
  }
}
