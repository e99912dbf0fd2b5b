import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import type { HubEntry } from '../../protocol/mqtt/hub-entries.ts'
import { refusals } from '../../protocol/serial/frames.ts'
import type { CoreSettings } from '../../protocol/settings/hub-limits.ts'
import { DeadLetters } from './inbox.ts'
import { Facts } from './facts.ts'
import { mergeKey, replacedBy } from './outbox.ts'
import { DiskTable, Rows } from './rows.ts'
import { Stock } from './stock.ts'
import type { Store } from './store.ts'
import * as tables from './tables.ts'
import { NEVER_SENT, type OperationRow, type OrderRow, type Unit, type UnitState } from './tables.ts'

/**
 * The complete state of the hub. It is loaded once, at the start. Live rows are in memory. Ended orders,
 * operations and commands, the stock ledger and other history stay on the disk. Callers change the state
 * within `store.transact`.
 */
export type State = ReturnType<typeof loadState>

/** `bins`: the numbers of the hub's bins. Writes nothing. */
export function loadState(store: Store, bins: readonly number[]) {
  const whole = {
    facts: new Facts(new Rows(store, tables.meta)),
    controllers: new Rows(store, tables.controllers),
    rowFaults: new Rows(store, tables.rowFaults),
    fridges: new Rows(store, tables.fridges),
    reported: new Rows(store, tables.reportedStates),
    alarms: new Rows(store, tables.alarms),
    bins: new Bins(store, bins),
    stock: new Stock(store),
    deadLetters: new DeadLetters(store),
    held: new HeldEntries(store, tables.heldEntries),
    knownOperations: new DiskTable(store, tables.knownOperations),
  }
  const live = {
    operations: new Operations(store),
    orders: new Orders(store),
    commands: new Commands(store),
    acceptances: new Acceptances(store),
  }
  return {
    ...whole,
    ...live,
    /** Deletes old rows of finished work. */
    prune(kept: CoreSettings['kept']): void {
      live.operations.prune(kept.rows)
      live.orders.prune(kept.rows)
      live.commands.prune(kept.rows)
      live.acceptances.prune(kept.acceptances)
      whole.deadLetters.prune(kept.rows)
      whole.stock.prune(kept.stockRows)
    },
  }
}

/** The journal's data about bins. The controllers report the positions of doors and lifts. */
class Bins extends Rows<typeof tables.bins> {
  constructor(store: Store, numbers: readonly number[]) {
    super(store, { ...tables.bins, live: `number IN (${numbers.join(', ')})` })
    // A bin has no row until it has data, so that a start writes nothing: a full disk has no room for it.
    const initial = { order_id: null, opened: false, failures: 0, fault: null, on_trial: false }
    this.assume(numbers.map((number) => ({ number, ...initial })))
  }

  ofOrder(orderId: string): tables.BinRow[] {
    return this.all().filter((bin) => bin.order_id === orderId)
  }

  /** The bins of `bins` that the hub has, without the bins of other orders. */
  freeFor(orderId: string, bins: readonly number[]): number[] {
    return this.all().flatMap(({ number, order_id }) =>
      bins.includes(number) && (order_id ?? orderId) === orderId ? [number] : [],
    )
  }

  /** Throws if another order holds the bin: the goods of that order may be in it. */
  hold(bin: number, orderId: string): void {
    const holder = this.find(bin)?.order_id ?? orderId
    if (holder !== orderId) throw new Error(`bin ${bin} belongs to order ${holder}, not to order ${orderId}`)
    this.change(bin, { order_id: orderId, opened: false, on_trial: false })
  }

  release(bin: number): void {
    this.change(bin, { order_id: null, opened: false })
  }

  releaseAll(): void {
    for (const { number } of this.all()) this.release(number)
  }
}

/** The end of a command. */
export type CommandEnd = {
  outcome: CommandResult['outcome']
  reason: CommandReason | null
  data: Record<string, unknown> | null
}

export interface UnitKey {
  order_id: string
  line_id: number
  /** From 0 to the line's quantity minus 1. */
  unit: number
}
export interface UnitRow extends UnitKey, Unit {}

const unitsByOrder = new WeakMap<OrderRow, readonly UnitRow[]>()

/** The units of an order, in the order of its lines. */
export function unitsOf(order: OrderRow): readonly UnitRow[] {
  let units = unitsByOrder.get(order)
  if (units === undefined) {
    units = order.lines.flatMap(({ line_id, units: ofLine }) =>
      ofLine.map((unit, index) => ({ order_id: order.id, line_id, unit: index, ...unit })),
    )
    unitsByOrder.set(order, units)
  }
  return units
}

class Orders extends Rows<typeof tables.orders> {
  readonly #unfinished: (isUnfinished: true) => readonly OrderRow[]

  constructor(store: Store) {
    super(store, tables.orders)
    this.#unfinished = this.index(({ ended_at }) => (ended_at === null ? true : undefined))
  }

  /** In the order of their arrival. */
  unfinished(): readonly OrderRow[] {
    return this.#unfinished(true)
  }

  /** Unfinished orders, and orders that ended since `endedSince`, in the order of their arrival. */
  since(endedSince: number): OrderRow[] {
    return this.select('WHERE ended_at IS NULL OR ended_at >= ? ORDER BY number', endedSince)
  }

  /** The newest first. */
  newest(count: number): OrderRow[] {
    return this.select('ORDER BY number DESC LIMIT ?', count)
  }

  units(id: string): readonly UnitRow[] {
    const order = this.find(id)
    return order === undefined ? [] : unitsOf(order)
  }

  setUnit({ order_id, line_id, unit }: UnitKey, state: UnitState, bin: number | null): void {
    this.#changeLine(order_id, line_id, ({ units }) => ({ units: units.with(unit, { state, bin }) }))
  }

  /** Counts one more dropped unit of a recovered order's line. */
  addKnownDropped(id: string, line_id: number): void {
    this.#changeLine(id, line_id, ({ known_dropped }) => ({ known_dropped: known_dropped + 1 }))
  }

  /** Stores the wanted units of a line. The fewest count, because older reports may arrive later. */
  want(id: string, line_id: number, units: number): void {
    this.#changeLine(id, line_id, ({ wanted = units }) => ({ wanted: Math.min(wanted, units) }))
  }

  /** Deletes ended orders except the newest `kept`. */
  prune(kept: number): void {
    const newest = this.value('max(number)', '') ?? 0
    const isUnheld = 'id NOT IN (SELECT order_id FROM bins WHERE order_id IS NOT NULL)'
    this.removeHistory(`ended_at IS NOT NULL AND number <= ? AND ${isUnheld}`, newest - kept)
  }

  #changeLine(
    id: string,
    line_id: number,
    change: (line: tables.OrderLine) => Partial<tables.OrderLine>,
  ): void {
    const lines = this.find(id)?.lines ?? []
    this.change(id, {
      lines: lines.map((line) => (line.line_id === line_id ? { ...line, ...change(line) } : line)),
    })
  }
}

export type OperationEnd = Pick<OperationRow, 'state' | 'why' | 'moved' | 'drops' | 'ms' | 'ended_at'>

/** Reasons of operations that moved nothing and are not in their controller's memory: never sent, or refused. */
const notHeld = [NEVER_SENT, ...refusals].map((why) => `'${why}'`).join(', ')

const isUnsettled = ({ state }: OperationRow): boolean => state === 'open' || state === 'unknown'

class Operations extends Rows<typeof tables.operations> {
  readonly #inState = this.index(({ state }) => state)
  readonly #ofOrder = this.index(({ order_id }) => order_id ?? undefined)
  readonly #ofCommand = this.index(({ command_id }) => command_id ?? undefined)
  readonly #imported = this.index(({ imported }) => (imported ? true : undefined))
  /** By controller: operations to query. */
  readonly #questions = this.index((row) => (isUnsettled(row) || row.recheck ? row.controller : undefined))

  constructor(store: Store) {
    super(store, tables.operations)
  }

  open(): readonly OperationRow[] {
    return this.#inState('open')
  }

  unknown(): readonly OperationRow[] {
    return this.#inState('unknown')
  }

  /** Operations to query at the controller: open ones, unknown ones, and dispenses with a late drop. */
  questionsFor(controller: string): readonly OperationRow[] {
    return this.#questions(controller)
  }

  /** Operations of a unit of an unfinished order. */
  ofUnit({ order_id, line_id, unit }: UnitKey): OperationRow[] {
    return this.#ofOrder(order_id).filter((row) => row.line_id === line_id && row.unit === unit)
  }

  /** Operations of an open command. */
  ofCommand(commandId: string): readonly OperationRow[] {
    return this.#ofCommand(commandId)
  }

  /** Operations imported from controllers' memories that are not accounted for yet. */
  imported(): readonly OperationRow[] {
    return this.#imported(true)
  }

  /** Stores the outcome. */
  end(id: string, { state, why, moved, drops, ms, ended_at }: OperationEnd): void {
    this.change(id, { state, why, moved, drops, ms, ended_at })
  }

  settledSince(since: number): OperationRow[] {
    return this.select('WHERE settled_by IS NOT NULL AND ended_at >= ? ORDER BY number', since)
  }

  /**
   * Dispenses from a controller's memory that happened before this store was created, and that the cloud's
   * stock included then.
   */
  knownSince(since: number): OperationRow[] {
    const isKnown = 'id IN (SELECT id FROM known_operations)'
    return this.select(
      `WHERE action = 'dispense' AND state = 'done' AND ended_at >= ? AND ${isKnown} ORDER BY number`,
      since,
    )
  }

  /** Operations from a controller's memory with this note that belong to no order yet. */
  ofNote(ref: string): OperationRow[] {
    return this.select('WHERE ref = ? AND imported = 0 AND order_id IS NULL ORDER BY number', ref)
  }

  /**
   * Deletes finished operations except the newest `kept` of each controller's memory. Operations that the
   * memory never contained are counted separately. The newest operations of the memory must stay in the
   * journal; otherwise the journal would look like an older copy of itself.
   */
  prune(kept: number): void {
    this.removeHistory(
      `state NOT IN ('open', 'unknown') AND recheck = 0 AND number IN (
         SELECT number FROM (
           SELECT number, row_number() OVER (
             PARTITION BY controller, memory_id, state = 'nothing' AND why IN (${notHeld})
             ORDER BY number DESC) AS age FROM operations)
         WHERE age > ?)`,
      kept,
    )
  }
}

class Commands extends Rows<typeof tables.commands> {
  readonly #open: (isOpen: true) => readonly tables.CommandRow[]

  constructor(store: Store) {
    super(store, tables.commands)
    this.#open = this.index(({ outcome }) => (outcome === null ? true : undefined))
  }

  /** Commands without an outcome. */
  open(): readonly tables.CommandRow[] {
    return this.#open(true)
  }

  prune(kept: number): void {
    this.removeHistory('outcome IS NOT NULL AND number <= ?', (this.value('max(number)', '') ?? 0) - kept)
  }
}

class Acceptances extends Rows<typeof tables.acceptances> {
  readonly attempts: DiskTable<typeof tables.acceptanceAttempts>

  constructor(store: Store) {
    super(store, tables.acceptances)
    this.attempts = new DiskTable(store, tables.acceptanceAttempts)
  }

  /** The acceptance that has not ended; there is at most one. */
  open(): tables.AcceptanceRow | undefined {
    return this.all().find(({ ended_at }) => ended_at === null)
  }

  /** The newest first. */
  list(): tables.AcceptanceRow[] {
    return this.select('ORDER BY number DESC')
  }

  /** Attempts in their order. An ended acceptance has an attempt for each step, also for skipped steps. */
  attemptsOf(id: string): tables.AttemptRow[] {
    return this.attempts.select('WHERE acceptance_id = ? ORDER BY number', id)
  }

  decide(attempt: number, verdict: 'passed' | 'failed', remark: string): void {
    this.attempts.update('verdict = ?, remark = ?', 'WHERE number = ?', verdict, remark, attempt)
  }

  /** Deletes all but the newest. */
  prune(kept: number): void {
    const newest = this.value('max(number)', '') ?? 0
    this.removeHistory('ended_at IS NOT NULL AND number <= ?', newest - kept)
    this.attempts.remove('WHERE acceptance_id NOT IN (SELECT id FROM acceptances)')
  }
}

/**
 * Entries for the cloud from a hub without stock. They wait for the first snapshot of the epoch. States and
 * alarms replace earlier ones as in the outbox.
 */
class HeldEntries extends DiskTable<typeof tables.heldEntries> {
  hold(entry: HubEntry): void {
    const tail =
      mergeKey(entry) === undefined ? [] : this.select('ORDER BY number DESC LIMIT ?', SEARCHED_ENTRIES)
    const replaced = replacedBy(
      tail.map(({ number, body }) => ({ number, entry: JSON.parse(body) as HubEntry })),
      entry,
    )
    if (replaced) this.remove('WHERE number = ?', replaced.number)
    this.add({ body: JSON.stringify(entry) })
  }

  /** Returns the entries in their order, and deletes them. */
  take(): HubEntry[] {
    const held = this.select('ORDER BY number')
    this.remove()
    return held.map(({ body }) => JSON.parse(body) as HubEntry)
  }
}

const SEARCHED_ENTRIES = 64
