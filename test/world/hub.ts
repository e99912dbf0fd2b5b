import type BetterSqlite3 from 'better-sqlite3'
import { createCore } from '../../edge/core/core.ts'
import { defaultCoreSettings, defaultLinkSettings } from '../../protocol/settings/hub-limits.ts'
import type { FirmwareOutcome } from '../../edge/desired/desired-states.ts'
import type { FirmwareImage } from '../../edge/hardware/firmware-images.ts'
import type { HubCore } from '../../edge/core/hub-core.ts'
import { createControllers } from '../../edge/hardware/controllers.ts'
import { JournalOutbox, type Outbox } from '../../edge/journal/outbox.ts'
import { openStore, type Store } from '../../edge/journal/store.ts'
import type { GpioLines, HardwareDescription, LinesProblem } from '../../protocol/model/hardware.ts'
import { locationKey } from '../../protocol/model/location.ts'
import { silentLog, type Log } from '../../protocol/model/log.ts'
import type { CloudEntry, QueuedOrder } from '../../protocol/mqtt/cloud-entries.ts'
import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandResult } from '../../protocol/mqtt/command.ts'
import { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { FaultType } from '../../simulator/faults/fault-types.ts'
import type { Act } from '../../simulator/physics/world-state.ts'
import { SimulatedHub } from '../../simulator/simulated-hub.ts'
import { memoryStorage } from './memory-storage.ts'
import { seededChance } from '../simulation/chance.ts'
import { simulatedHardware, stockedFacings } from '../simulation/hardware.ts'
import { uuid } from '../support/uuid.ts'
import { virtualClock, type VirtualClock } from './clock.ts'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'
import { desiredOf } from './firmware.ts'
import { config } from './hub-config.ts'
import { checkedStore } from './checked-store.ts'
import { Suspension } from './suspension.ts'

/** Thrown by a checkpoint to end a life. */
export class Crash extends Error {}

interface Life {
  alive: boolean
  ports: Set<LinePort>
  bornAt: number
}

export const SESSION = 'a'.repeat(32)

/**
 * A hub's core on the simulated hardware, with its journal in memory and a cloud that the test plays. The
 * hardware continues while the hub is dead, and a new life starts on the same journal.
 */
export class TestHub {
  readonly clock: VirtualClock = virtualClock()
  readonly room: SimulatedHub
  journal: BetterSqlite3.Database
  core!: HubCore
  outbox!: Outbox
  store!: Store
  /** Whether lines of locks and doors can be read. */
  hasLines = true
  /** Names of outputs that cannot be driven, and of lines that cannot be read. */
  readonly stuckLines = new Set<string>()
  readonly blindLines = new Set<string>()
  linesProblem: LinesProblem | undefined
  /** Compares the store's memory with its tables at every check, with one statement each. */
  isChecked = true
  isOnTrial = false
  /** Called at every checkpoint; throws to crash. */
  onCheckpoint: (point: string) => void = () => {}
  /** Checkpoints of the present life. */
  passed: string[] = []
  inboxResets = 0
  readonly #log: { level: keyof Log; message: string }[] = []
  /** The hardware description of the hub's next life. */
  hardware: HardwareDescription
  /** The number of the hub in the cell from which it moved. */
  formerHubId: number | undefined
  /** Lines of this hub that lead to another controller than intended, by their ports. */
  readonly plugs = new Map<string, string>()
  #life: Life | undefined
  #chance = seededChance(7)
  #commands = 0
  /** The error of the former life that the next life reads. */
  lastError: string | undefined
  certificates: { name: string; endsAt: number }[] = []
  images: readonly FirmwareImage[] = []
  /** The states of the controllers' firmware, in the order in which the hub has noted them. */
  readonly firmwareOutcomes: FirmwareOutcome[] = []
  /** The id of the rollout that has brought the running release. */
  rollout: string | null = null
  /** Name and version of the service in the hub's next life. */
  software = 'larder-edge test'
  readonly #suspension = new Suspension()
  /** The settings of the hub's next life. */
  settings = defaultCoreSettings

  /** `versions`: serial protocol versions by controller; undefined: the newest. */
  constructor(seed = 1, versions?: ReadonlyMap<string, number>, hardware = simulatedHardware) {
    this.hardware = hardware
    this.#chance = seededChance(seed)
    this.journal = new Sqlite(':memory:')
    this.room = new SimulatedHub({
      hardware,
      runtime: { clock: this.clock, random: seededChance(seed + 1000) },
      storage: memoryStorage(),
      log: silentLog,
      versions,
      loaded: [...stockedFacings],
    })
  }

  /** A started hub with the cloud's snapshot and connected controllers. */
  static ready(seed?: number, versions?: ReadonlyMap<string, number>): TestHub {
    const bench = new TestHub(seed, versions)
    bench.begin()
    bench.apply(bench.snapshot())
    bench.run(defaultCoreSettings.emptyProofMs + 1000)
    return bench
  }

  begin(): void {
    const life: Life = { alive: true, ports: new Set(), bornAt: this.clock.monotonic() }
    this.#life = life
    this.passed = []
    const checkpoint = (point: string): void => {
      if (!life.alive) throw new Crash(`${point} after death`)
      this.passed.push(point)
      this.onCheckpoint(point)
    }
    const runtime = { clock: this.#suspension.clockOf(this.clock, () => life.alive), random: this.#chance }
    this.attempt(() => {
      const store = openStore({ path: ':memory:', database: this.journal, checkpoint, log: silentLog })
      this.store = this.isChecked ? checkedStore(store) : store
      this.outbox = new JournalOutbox(this.store, runtime)
      this.core = createCore({
        runtime,
        log: this.#logger,
        store: this.store,
        outbox: this.outbox,
        resetInbox: () => this.inboxResets++,
        openControllers: (events) =>
          createControllers(
            {
              hardware: this.hardware,
              openPort: this.#portsFor(life),
              runtime,
              log: silentLog,
              settings: defaultLinkSettings,
            },
            events,
          ),
        gpio: this.#gpioFor(life),
        hardware: this.hardware,
        formerHubId: this.formerHubId,
        settings: this.settings,
        software: this.software,
        lastError: this.lastError,
        certificates: () => this.certificates,
        images: this.images,
        desired: desiredOf(this),
        isOnTrial: () => this.isOnTrial,
        checkpoint,
      })
      this.core.start()
    })
  }

  get alive(): boolean {
    return this.#life?.alive ?? false
  }

  /** Ends the life like SIGKILL. */
  kill(): void {
    const life = this.#life
    if (!life) return
    life.alive = false
    for (const port of life.ports) port.close()
    if (this.journal.inTransaction) this.journal.exec('ROLLBACK')
  }

  restart(): void {
    this.kill()
    this.begin()
  }

  /** The process does not run for this time, as after SIGSTOP; the hardware continues. */
  suspend(ms: number): void {
    this.#suspension.begin()
    this.run(ms)
    this.#suspension.end(this.clock)
  }

  /** A new life on another journal: a new one, or a copy made by `copy`. */
  restartOn(copy?: Buffer): void {
    this.kill()
    this.journal = copy ? new Sqlite(copy) : new Sqlite(':memory:')
    this.begin()
  }

  /** The cloud sends its time. It is later than the hub's estimate by `laterMs`. */
  welcome(laterMs = 0): void {
    const offset = this.core.cloudNow() + laterMs - (this.clock.monotonic() - this.#life!.bornAt)
    this.core.setCloudClock(offset, { passing: false })
  }

  copy(): Buffer {
    return this.journal.serialize()
  }

  /** Lets time pass; a crash ends the life, and time continues. */
  run(ms: number): void {
    this.runUntil(() => false, ms)
  }

  runUntil(done: () => boolean, ms = 600_000): boolean {
    const end = this.clock.monotonic() + ms
    while (this.clock.monotonic() < end && !done())
      this.attempt(() => void this.clock.runUntil(done, end - this.clock.monotonic()))
    return done()
  }

  /** Calls the hub; a crash ends the life. */
  attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (!(error instanceof Crash)) throw error
      this.kill()
    }
  }

  apply(...entries: CloudEntry[]): void {
    this.attempt(() =>
      this.store.transact(() => {
        for (const entry of entries)
          this.core.applyCloudEntry(entry, (_, error) => {
            throw error
          })
      }),
    )
  }

  command(body: CommandBody, id = uuid(++this.#commands)): { results: CommandResult[]; id: string } {
    const results: CommandResult[] = []
    const command = { command_id: id, session: SESSION, expires_monotonic: Infinity, body }
    this.attempt(() => this.core.execute(command, (result) => results.push(result)))
    return { results, id }
  }

  fault(type: FaultType, target?: string, more: { for_ms?: number; probability?: number } = {}): string {
    return this.room.faults.raise({ type, target, ...more }).id
  }

  /** Ledger entries that the cloud has not received. */
  ledger(): HubEntry[] {
    const { base } = this.outbox.position('ledger')
    return this.outbox
      .read('ledger', base + 1, 100_000)
      .entries.map(({ body }) => HubEntry.parse(JSON.parse(body)))
  }

  kinds(): string[] {
    return this.ledger().map((entry) => entry.kind)
  }

  entries<K extends HubEntry['kind']>(kind: K): Extract<HubEntry, { kind: K }>[] {
    return this.ledger().filter((entry): entry is Extract<HubEntry, { kind: K }> => entry.kind === kind)
  }

  order(id: number, products: Record<number, number>, more: Partial<QueuedOrder> = {}): QueuedOrder {
    return {
      order_id: uuid(id),
      number: id,
      lines: Object.entries(products).map(([product, quantity], index) => ({
        line_id: id * 10 + index,
        product_id: Number(product),
        quantity,
      })),
      bin: null,
      open_when_ready: false,
      queued_at: this.core.cloudNow(),
      start_by: this.core.cloudNow() + 600_000,
      hub_epoch: this.outbox.position('ledger').epoch,
      ...more,
    }
  }

  queue(id: number, products: Record<number, number>, more: Partial<QueuedOrder> = {}): void {
    this.apply({ kind: 'order.queued', order: this.order(id, products, more) })
  }

  snapshot(more: Partial<Extract<CloudEntry, { kind: 'snapshot' }>> = {}): CloudEntry {
    return {
      kind: 'snapshot',
      config,
      facings: stockedFacings.map(({ product_id, primary, cabinet, shelf, row }) => {
        return { product_id, primary, location: { cabinet, shelf, row } }
      }),
      stock: stockedFacings.map(({ product_id, units, cabinet, shelf, row }) => {
        return { product_id, location: { cabinet, shelf, row }, quantity: units }
      }),
      known_operations: [],
      orders: [],
      ...more,
    }
  }

  phase(orderNumber: number): string | undefined {
    return this.journal
      .prepare<[number], string>('SELECT phase FROM orders WHERE order_number = ?')
      .pluck()
      .get(orderNumber)
  }

  /** Changes the journal by a statement, as if it had another history. */
  rewrite(sql: string, ...parameters: unknown[]): void {
    this.store.transact(() => {
      this.journal.prepare(sql).run(...parameters)
      this.store.reread()
    })
  }

  /** Motions of devices in order, without people's acts. */
  motions(): Act[] {
    return this.room.actuations().filter((act) => act.operation_id !== undefined)
  }

  dispenses(): Act[] {
    return this.motions().filter((act) => act.action === 'dispense')
  }

  /** Log lines of the core at this level. */
  logged(level: keyof Log): string[] {
    return this.#log.filter((line) => line.level === level).map(({ message }) => message)
  }

  get #logger(): Log {
    const at = (level: keyof Log) => (_fields: object, message: string) =>
      void this.#log.push({ level, message })
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  /** Units on the shelf by the world's own state, by location. */
  shelf(location: string): number {
    return this.room.world.chronicle.state.rows.get(location)?.units ?? -1
  }

  /** The hub's stock, by location. */
  stock(): Record<string, number> {
    return Object.fromEntries(
      this.core.stock().map((facing) => [locationKey(facing.location), facing.quantity]),
    )
  }

  /** Facings with a different stock at the hub and on the shelf. */
  stockErrors(): string[] {
    return Object.entries(this.stock())
      .filter(([location, units]) => this.shelf(location) !== units)
      .map(([location, units]) => `${location}: ${units} at the hub, ${this.shelf(location)} on the shelf`)
  }

  /** The customer takes all units out of the open bins. */
  takeAll(): void {
    for (const [device, bin] of this.room.world.chronicle.state.bins)
      if (bin.door === 'open' && bin.contents.length > 0)
        this.room.act({ action: 'take_items', target: device })
  }

  #portsFor(life: Life): OpenLinePort {
    // Calls into the hub are separate tasks: a crash there unwinds nothing of the room.
    const inHub =
      <Args extends unknown[]>(call: (...args: Args) => void) =>
      (...args: Args): void =>
        void this.#suspension.after(this.clock, 0, () => {
          if (life.alive) call(...args)
        })
    return (options, handlers) => {
      const path = this.plugs.get(options.path) ?? options.path
      const port = this.room.openPort(
        { ...options, path },
        {
          onOpen: inHub(() => handlers.onOpen()),
          onLine: inHub((line: string) => handlers.onLine(line)),
          onClose: inHub((reason: string) => handlers.onClose(reason)),
        },
      )
      life.ports.add(port)
      return port
    }
  }

  #gpioFor(life: Life): GpioLines {
    const lines = this.room.gpio.asLines()
    return {
      read: (name) => (this.hasLines && !this.blindLines.has(name) ? lines.read(name) : undefined),
      write: (name, level) => !this.stuckLines.has(name) && lines.write(name, level),
      problem: () => this.linesProblem,
      watch: (name, listener) =>
        lines.watch(name, () => {
          if (life.alive) listener()
        }),
      close: () => lines.close(),
    }
  }
}
