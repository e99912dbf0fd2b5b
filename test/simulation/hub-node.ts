import { rmSync, writeFileSync } from 'node:fs'
import type BetterSqlite3 from 'better-sqlite3'
import { createHub, type Hub } from '../../edge/hub.ts'
import type { DesiredStates } from '../../edge/desired/desired-states.ts'
import type { FacingStock } from '../../edge/core/summaries.ts'
import { StorageError, storageReasonOf } from '../../edge/journal/storage-error.ts'
import { openStore } from '../../edge/journal/store.ts'
import { createRunner, type Runner, type Running } from '../../edge/runner.ts'
import { startWaiting } from '../../edge/waiting.ts'
import { defaultHubSettings, type HubSettings } from '../../protocol/settings/hub-limits.ts'
import { collectHub } from '../invariants/collect-hub.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import type { StorageReason } from '../../protocol/model/storage.ts'
import type { Board } from './board.ts'
import type { Chance } from './chance.ts'
import type { Coverage } from './coverage.ts'
import type { CrashPoints } from './crash-points.ts'
import { hardwareOf } from './hardware.ts'
import type { Network } from './network.ts'
import type { Room } from './room.ts'
import type { Life, Scheduler } from './scheduler.ts'
import { imageOf } from '../world/firmware.ts'
import { LineObserver } from './line-observer.ts'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'

export interface HubParts {
  scheduler: Scheduler
  network: Network
  room: Room
  chance: Chance
  coverage: Coverage
  crashPoints: CrashPoints
  hubId?: number
  settings?: HubSettings
  image?: Buffer | undefined
  /** A copy of another board's card, with which this board starts. */
  card?: Buffer
  /** Its certificate, its releases and its updater; absent: a hub that is not enrolled and never updated. */
  board?: Board | undefined
  /** File of the journal; without it the journal is in memory. */
  path?: string | undefined
  /** The certificate on a copied card. */
  certificate?: string | undefined
}

/** An entry of a ledger stream, with the tag that no other history has. */
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

/** A hub with a failing card may be unable to write during its shutdown. */
function ifCardWorks(work: () => void): void {
  try {
    work()
  } catch (error) {
    if (!isStorageError(error)) throw error
  }
}

/** The hub's service over its lives, on one journal that survives them. */
export class HubNode {
  readonly #parts: HubParts
  #journal: BetterSqlite3.Database
  #copy: Buffer | undefined
  #life: Life | undefined
  #hub: Hub | undefined
  #runner: Runner<Running> | undefined
  #fault: StorageReason | undefined
  #isFull = false
  /** Error of its wall clock in milliseconds. */
  #wallOffset = 0
  heldDown = false
  /** Certificates that the hub knows, and their expiry by the wall clock. */
  certificates: readonly { name: string; endsAt: number }[] = []
  /** The version of the desired state that it left. Change it and call `core.noteDesired`. */
  failed: ReturnType<DesiredStates['failed']> = null
  /** Whether another board is in its place. */
  takenOut = false
  /** Number of its stores so far. A new store does not know the blocked rows of the former one. */
  generation = 0
  readonly hubId: number
  readonly line: LineObserver
  /** Operations that commands caused, over all stores. */
  readonly commandOfOperation = new Map<string, string>()

  constructor(parts: HubParts) {
    this.#parts = parts
    this.#journal = new Sqlite(parts.card ?? this.path ?? ':memory:')
    this.hubId = parts.hubId ?? 1
    this.line = new LineObserver(this.hubId)
    parts.board?.attach(this)
  }

  get board(): Board | undefined {
    return this.#parts.board
  }

  /** Name of its line to the broker. */
  get name(): string {
    const { hubId } = this
    return this.#parts.card ? `copy of hub-${hubId}` : `hub-${hubId}`
  }

  get hub(): Hub | undefined {
    return this.#life?.alive === true && this.#runner?.phase()?.kind === 'running' ? this.#hub : undefined
  }

  /** The rows that its service reports; for a stopped service, its last report. */
  get stock(): FacingStock[] | undefined {
    return this.#hub?.core.stock()
  }

  get journal(): BetterSqlite3.Database {
    return this.#journal
  }

  start(): void {
    const { scheduler, network, room, chance, coverage, crashPoints, board } = this.#parts
    if (this.heldDown || this.takenOut || board?.isStopped || this.#life?.alive === true) return
    const { name, hubId } = this
    const life = scheduler.newLife(name, () => {
      coverage.hit('hub lives ended')
      room.unplug(life)
      network.cut((one) => one === life, 'process gone')
      if (this.#journal.inTransaction) this.#journal.exec('ROLLBACK')
      room.plan(chance.between(200, 6000), () => this.start())
    })
    this.#life = life
    this.#runner = undefined
    if (board?.health === 'crashes') scheduler.plan(life, 1000, () => scheduler.kill(life, 'bad release'))
    // Its process runs, and does nothing.
    if (board?.health === 'crashes' || board?.health === 'never becomes ready') return
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
      const certificate = (): string | undefined => board?.certificate() ?? this.#parts.certificate
      const open = network.transportFor(name, life, { clientId: `hub-${hubId}`, certificate })
      const cloudNow = (): number => this.hub?.core.cloudNow() ?? clock.now()
      const openTransport = this.line.tap(board?.over(open, clock, cloudNow) ?? open, clock)
      const openPort = room.portsFor(life, (operationId) => this.#isCommitted(operationId))
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
            openPort: board?.ports(openPort) ?? openPort,
            gpio,
            openTransport,
            checkpoint,
            settings,
            certificates: () => board?.certificates() ?? this.certificates,
            ...(board && { software: `larder-edge ${board.version}` }),
            trial: board?.trial,
            images: this.#parts.image ? [imageOf(this.#parts.image)] : [],
            desired: board?.desired ?? {
              offer() {},
              failedUpdate: () => null,
              rollout: () => null,
              noteFirmware() {},
              failed: () => this.failed,
              isMissing: () => false,
              report: () => undefined,
              onReport() {},
            },
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

  /** Makes the card fail; undefined ends the failure. Returns a function that ends it. */
  failStorage(fault: StorageReason | undefined): () => void {
    this.#fault = fault
    return () => void (this.#fault = undefined)
  }

  /** A person inserts another hub's card. Returns a function that restores the own card. */
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

  /** Writes a file beside the journal. Throws if the card cannot be written. */
  touchFiles(): void {
    this.#touchCard('journal.file')
    if (this.#isFull) throw new Sqlite.SqliteError('the disk is full', 'SQLITE_FULL')
  }

  /** Whether an order is in progress, as the updater reads the journal. */
  isBusy(): boolean {
    if (!this.#hasTable('orders')) return false
    return this.#journal.prepare('SELECT 1 FROM orders WHERE ended_at IS NULL').get() !== undefined
  }

  /** A fault at any commit: before it, or after it with a lost answer. */
  #touchCard(point: string): void {
    if (this.#fault === undefined || !point.startsWith('journal.')) return
    const [code, message] = sqliteErrors[this.#fault] ?? ['SQLITE_IOERR_WRITE', 'disk I/O error']
    throw new Sqlite.SqliteError(message, code)
  }

  kill(reason = 'SIGKILL'): void {
    if (this.#life) this.#parts.scheduler.kill(this.#life, reason)
  }

  /** Shifts the wall clock; a board without a battery may start in 1970. */
  shiftWall(offsetMs: number): void {
    this.#wallOffset = offsetMs
  }

  /** The card breaks and is replaced by a new one. */
  loseStore(): void {
    this.kill('new card')
    this.noteCommands()
    this.generation++
    this.#journal = new Sqlite(this.path ?? ':memory:')
  }

  /** File of the present journal, if it has one. */
  get path(): string | undefined {
    const { path } = this.#parts
    return path === undefined ? undefined : `${path}.${this.generation}`
  }

  backUp(): void {
    this.#copy = this.card() ?? this.#copy
  }

  /** The content of its card, or undefined during a write. */
  card(): Buffer | undefined {
    return this.#journal.inTransaction ? undefined : this.#journal.serialize()
  }

  /** Restores the store's last copy. Returns false if there is none. */
  restore(): boolean {
    if (!this.#copy) return false
    this.kill('restored')
    this.noteCommands()
    this.generation++
    this.#journal = this.#opened(this.#copy)
    return true
  }

  /** The updater returns to the journal from before its switch. */
  putBack(copy: Buffer): void {
    this.noteCommands()
    this.#journal = this.#opened(copy)
  }

  /** A journal from its content: a file with a write-ahead log is one again, because it cannot be opened in memory. */
  #opened(content: Buffer): BetterSqlite3.Database {
    const { path } = this
    if (path === undefined) return new Sqlite(content)
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
    rmSync(path, { force: true })
    writeFileSync(path, content)
    return new Sqlite(path)
  }

  /** The hub runs and nothing is pending: no order, no operation, no unacknowledged entry. */
  isQuiet(): boolean {
    if (this.heldDown || this.takenOut || !this.#hasBegun()) return false
    const { orders, open, pending } = collectHub(this.#journal)
    return open.length === 0 && pending === 0 && orders.every(({ finished }) => finished)
  }

  /**
   * The last entry of its ledger stream, if the cloud has acknowledged all entries and no report is pending.
   */
  reportedUpTo(): LedgerPlace | undefined {
    if (!this.#hasBegun() || collectHub(this.#journal).pending > 0) return undefined
    return this.#journal
      .prepare<[], LedgerPlace>(
        "SELECT epoch, base AS cursor, base_tag AS tag FROM stream_positions WHERE stream = 'ledger'",
      )
      .get()
  }

  /**
   * The last applied entry from the cloud. Another board that runs with a copy of its card may be ahead of
   * it.
   */
  appliedUpTo(): { epoch: string | null; cursor: number } | undefined {
    if (!this.#hasTable('inbox_position')) return undefined
    return this.#journal
      .prepare<[], { epoch: string | null; cursor: number }>('SELECT epoch, cursor FROM inbox_position')
      .get()
  }

  /** Whether it has an order, by UUID, and has not started it. */
  hasYetToStart(orderId: string): boolean {
    if (!this.#hasTable('orders')) return false
    return (
      this.#journal.prepare("SELECT 1 FROM orders WHERE id = ? AND phase = 'queued'").get(orderId) !==
      undefined
    )
  }

  /** Whether its journal has a board on this line. */
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

  /** Records the command of each operation before the journal is deleted. */
  noteCommands(): void {
    if (!this.#hasTable('operations')) return
    const rows = this.#journal
      .prepare<[], { id: string; command_id: string }>(
        'SELECT id, command_id FROM operations WHERE command_id IS NOT NULL',
      )
      .all()
    for (const row of rows) this.commandOfOperation.set(row.id, row.command_id)
  }

  /** Prevents the store from adding pages. */
  fillDisk(full: boolean): void {
    this.#isFull = full
    const pages = this.#journal.pragma('page_count', { simple: true }) as number
    this.#journal.pragma(`max_page_count = ${full ? pages : 1_000_000}`)
  }
}
