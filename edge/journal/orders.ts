import { all, one, writer, writerOf } from './statements.ts'
import type { Store } from './store.ts'

/**
 * `recovering`: an earlier life of this hub may have worked on it; what its controllers remember decides. From `completed`
 * on it is ended.
 */
export type OrderPhase =
  | 'queued'
  | 'recovering'
  | 'preparing'
  | 'ready'
  | 'collecting'
  | 'completed'
  | 'cancelled'
  | 'timed_out'
  | 'failed'
  | 'unclaimed'
export type EndedPhase = Extract<OrderPhase, 'completed' | 'cancelled' | 'timed_out' | 'failed' | 'unclaimed'>

export interface OrderRow {
  number: number
  id: string
  /** What people call it. */
  order_number: number
  phase: OrderPhase
  reserved_bin: number | null
  open_when_ready: 0 | 1
  start_by: number
  /** JSON array of bin numbers. */
  bins: string
  reason: string | null
  received_at: number
  preparing_at: number | null
  ready_at: number | null
  collecting_at: number | null
  ended_at: number | null
}
export type NewOrder = Pick<
  OrderRow,
  'id' | 'order_number' | 'phase' | 'reserved_bin' | 'open_when_ready' | 'start_by' | 'bins' | 'received_at'
>

export interface LineRow {
  order_id: string
  line_id: number
  product_id: number
  quantity: number
  known_dropped: number
}

/** `doubtful`: nobody knows whether it fell. `short`: it did not. */
export type UnitState = 'waiting' | 'running' | 'dropped' | 'doubtful' | 'short'
export interface UnitKey {
  order_id: string
  line_id: number
  /** From 0 to the line's quantity less one. */
  unit: number
}
export interface UnitRow extends UnitKey {
  state: UnitState
  /** The bin that it fell into, or was to. */
  bin: number | null
}

export type Orders = ReturnType<typeof createOrders>

/** The orders that this hub is to finish, or has finished, with their lines and units. */
export function createOrders(store: Store) {
  const { db } = store
  const find = one(db.prepare<[id: string], OrderRow>('SELECT * FROM orders WHERE id = ?'))
  const lines = all(
    db.prepare<[id: string], LineRow>('SELECT * FROM order_lines WHERE order_id = ? ORDER BY line_id'),
  )
  const units = all(
    db.prepare<[id: string], UnitRow>('SELECT * FROM units WHERE order_id = ? ORDER BY line_id, unit'),
  )
  const unfinished = all(
    db.prepare<[], OrderRow>('SELECT * FROM orders WHERE ended_at IS NULL ORDER BY number'),
  )
  // All that has been asked for since an order was last changed. Of orders that have ended nothing is kept: they become ever more.
  const kept = {
    unfinished: store.keep(() => {
      const rows: readonly OrderRow[] = unfinished()
      return { rows, ids: new Set(rows.map(({ id }) => id)) }
    }),
    rows: store.keepBy(find),
    lines: store.keepBy((id: string): readonly LineRow[] => lines(id)),
    units: store.keepBy((id: string): readonly UnitRow[] => units(id)),
  }
  const ofRows = [kept.unfinished, kept.rows]
  const writeRows = writer(...ofRows)
  const writeAll = writer(...ofRows, kept.lines, kept.units)
  const insert = writeRows(
    db.prepare<[NewOrder]>(
      `INSERT INTO orders (id, order_number, phase, reserved_bin, open_when_ready, start_by, bins, received_at)
     VALUES (@id, @order_number, @phase, @reserved_bin, @open_when_ready, @start_by, @bins, @received_at)`,
    ),
  )
  // An event changes one order of many: what is kept of the others stays.
  const insertLine = writerOf(
    kept.lines,
    ({ order_id }: LineRow) => order_id,
  )(
    db.prepare<[LineRow]>(
      `INSERT INTO order_lines (order_id, line_id, product_id, quantity, known_dropped)
     VALUES (@order_id, @line_id, @product_id, @quantity, @known_dropped)`,
    ),
  )
  const insertUnit = writerOf(
    kept.units,
    (orderId: string, _lineId: number, _unit: number) => orderId,
  )(
    db.prepare<[orderId: string, lineId: number, unit: number]>(
      `INSERT INTO units (order_id, line_id, unit, state) VALUES (?, ?, ?, 'waiting')`,
    ),
  )
  const setUnit = writerOf(
    kept.units,
    ({ order_id }: UnitRow) => order_id,
  )(
    db.prepare<[UnitRow]>(
      'UPDATE units SET state = @state, bin = @bin WHERE order_id = @order_id AND line_id = @line_id AND unit = @unit',
    ),
  )
  type Begun = [at: number, bins: string, id: string]
  const prepare = writeRows(
    db.prepare<Begun>(`UPDATE orders SET phase = 'preparing', preparing_at = ?, bins = ? WHERE id = ?`),
  )
  const setReady = writeRows(
    db.prepare<Begun>(`UPDATE orders SET phase = 'ready', ready_at = ?, bins = ? WHERE id = ?`),
  )
  const setCollecting = writeRows(
    db.prepare<[at: number, id: string]>(
      `UPDATE orders SET phase = 'collecting', collecting_at = ? WHERE id = ?`,
    ),
  )
  const keepShut = writeRows(db.prepare<[id: string]>('UPDATE orders SET open_when_ready = 0 WHERE id = ?'))
  const end = writeRows(
    db.prepare<[phase: EndedPhase, at: number, reason: string | null, id: string]>(
      'UPDATE orders SET phase = ?, ended_at = ?, reason = ? WHERE id = ?',
    ),
  )
  const isUnfinished = (id: string): boolean => kept.unfinished.get().ids.has(id)
  return {
    /** Adds an order with its lines and one waiting unit for each item. */
    insert(order: NewOrder, lines: readonly LineRow[]): void {
      insert(order)
      for (const line of lines) {
        insertLine(line)
        for (let unit = 0; unit < line.quantity; unit++) insertUnit(line.order_id, line.line_id, unit)
      }
    },
    find: kept.rows.get,
    lines: (id: string): readonly LineRow[] => (isUnfinished(id) ? kept.lines.get(id) : lines(id)),
    units: (id: string): readonly UnitRow[] => (isUnfinished(id) ? kept.units.get(id) : units(id)),
    /** In the order of their arrival. */
    unfinished: () => kept.unfinished.get().rows,
    /** Unfinished ones, and those that ended since, in the order of their arrival. */
    since: all(
      db.prepare<[endedSince: number], OrderRow>(
        'SELECT * FROM orders WHERE ended_at IS NULL OR ended_at >= ? ORDER BY number',
      ),
    ),
    /** The newest first. */
    newest: all(db.prepare<[count: number], OrderRow>('SELECT * FROM orders ORDER BY number DESC LIMIT ?')),
    setUnit: ({ order_id, line_id, unit }: UnitKey, state: UnitState, bin: number | null) =>
      setUnit({ order_id, line_id, unit, state, bin }),
    /** One more unit of a recovered order's line that is known to have dropped. */
    addKnownDropped: writerOf(
      kept.lines,
      (id: string, _lineId: number) => id,
    )(
      db.prepare<[id: string, lineId: number]>(
        'UPDATE order_lines SET known_dropped = known_dropped + 1 WHERE order_id = ? AND line_id = ?',
      ),
    ),
    prepare: (id: string, at: number, bins: readonly number[]) => prepare(at, JSON.stringify(bins), id),
    setReady: (id: string, at: number, bins: readonly number[]) => setReady(at, JSON.stringify(bins), id),
    setCollecting: (id: string, at: number) => setCollecting(at, id),
    /** Its bin does not open by itself at READY. */
    keepShut: (id: string) => keepShut(id),
    end(id: string, phase: EndedPhase, at: number, reason: string | null): void {
      end(phase, at, reason, id)
      kept.lines.forget(id)
      kept.units.forget(id)
    },
    deleteAll: writeAll(db.prepare<[]>('DELETE FROM orders')),
    /** Deletes ended ones but the newest `kept`. */
    prune: writeAll(
      db.prepare<[kept: number]>(
        `DELETE FROM orders WHERE ended_at IS NOT NULL
         AND number <= (SELECT max(number) FROM orders) - ?
         AND id NOT IN (SELECT order_id FROM bins WHERE order_id IS NOT NULL)`,
      ),
    ),
  }
}
