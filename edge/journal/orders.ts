import type { Store } from './store.ts'

/**
 * `inherited`: an earlier life of this hub may have worked on it; what its controllers remember decides. From `completed`
 * on it is ended.
 */
export type OrderPhase =
  | 'queued'
  | 'inherited'
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
  id: number
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
  'id' | 'phase' | 'reserved_bin' | 'open_when_ready' | 'start_by' | 'bins' | 'received_at'
>

export interface LineRow {
  order_id: number
  line_id: number
  product_id: number
  quantity: number
  known_dropped: number
}

/** `doubtful`: nobody knows whether it fell. `short`: it did not. */
export type UnitState = 'waiting' | 'running' | 'dropped' | 'doubtful' | 'short'
export interface UnitRow {
  order_id: number
  line_id: number
  unit: number
  state: UnitState
  /** The bin that it fell into, or was to. */
  bin: number | null
}

export interface Orders {
  /** Adds an order with its lines and one waiting unit for each item. */
  insert(order: NewOrder, lines: LineRow[]): void
  find(id: number): OrderRow | undefined
  lines(id: number): LineRow[]
  units(id: number): UnitRow[]
  /** In the order of their arrival. */
  unfinished(): OrderRow[]
  /** The newest first. */
  newest(count: number): OrderRow[]
  setUnit(unit: Pick<UnitRow, 'order_id' | 'line_id' | 'unit'>, state: UnitState, bin: number | null): void
  /** One more unit of an inherited order's line that is known to have dropped. */
  addKnownDropped(id: number, lineId: number): void
  prepare(id: number, at: number, bins: number[]): void
  setReady(id: number, at: number, bins: number[]): void
  setCollecting(id: number, at: number): void
  end(id: number, phase: EndedPhase, at: number, reason: string | null): void
  deleteAll(): void
  /** Deletes ended ones but the newest `kept`. */
  prune(kept: number): void
}

export function createOrders({ db }: Store): Orders {
  const statements = {
    insert: db.prepare<NewOrder>(
      `INSERT INTO orders (id, phase, reserved_bin, open_when_ready, start_by, bins, received_at)
       VALUES (@id, @phase, @reserved_bin, @open_when_ready, @start_by, @bins, @received_at)`,
    ),
    insertLine: db.prepare<LineRow>(
      `INSERT INTO order_lines (order_id, line_id, product_id, quantity, known_dropped)
       VALUES (@order_id, @line_id, @product_id, @quantity, @known_dropped)`,
    ),
    insertUnit: db.prepare<[number, number, number]>(
      `INSERT INTO units (order_id, line_id, unit, state) VALUES (?, ?, ?, 'waiting')`,
    ),
    find: db.prepare<[number], OrderRow>('SELECT * FROM orders WHERE id = ?'),
    lines: db.prepare<[number], LineRow>('SELECT * FROM order_lines WHERE order_id = ? ORDER BY line_id'),
    units: db.prepare<[number], UnitRow>('SELECT * FROM units WHERE order_id = ? ORDER BY line_id, unit'),
    unfinished: db.prepare<[], OrderRow>('SELECT * FROM orders WHERE ended_at IS NULL ORDER BY number'),
    newest: db.prepare<[number], OrderRow>('SELECT * FROM orders ORDER BY number DESC LIMIT ?'),
    setUnit: db.prepare<[UnitState, number | null, number, number, number]>(
      'UPDATE units SET state = ?, bin = ? WHERE order_id = ? AND line_id = ? AND unit = ?',
    ),
    addKnownDropped: db.prepare<[number, number]>(
      'UPDATE order_lines SET known_dropped = known_dropped + 1 WHERE order_id = ? AND line_id = ?',
    ),
    prepare: db.prepare<[number, string, number]>(
      `UPDATE orders SET phase = 'preparing', preparing_at = ?, bins = ? WHERE id = ?`,
    ),
    setReady: db.prepare<[number, string, number]>(
      `UPDATE orders SET phase = 'ready', ready_at = ?, bins = ? WHERE id = ?`,
    ),
    setCollecting: db.prepare<[number, number]>(
      `UPDATE orders SET phase = 'collecting', collecting_at = ? WHERE id = ?`,
    ),
    end: db.prepare<[EndedPhase, number, string | null, number]>(
      'UPDATE orders SET phase = ?, ended_at = ?, reason = ? WHERE id = ?',
    ),
    deleteAll: db.prepare<[]>('DELETE FROM orders'),
    prune: db.prepare<[number]>(
      `DELETE FROM orders WHERE ended_at IS NOT NULL
         AND number <= (SELECT max(number) FROM orders) - ?
         AND id NOT IN (SELECT order_id FROM bins WHERE order_id IS NOT NULL)`,
    ),
  }
  return {
    insert(order, lines) {
      statements.insert.run(order)
      for (const line of lines) {
        statements.insertLine.run(line)
        for (let unit = 0; unit < line.quantity; unit++)
          statements.insertUnit.run(line.order_id, line.line_id, unit)
      }
    },
    find: (id) => statements.find.get(id),
    lines: (id) => statements.lines.all(id),
    units: (id) => statements.units.all(id),
    unfinished: () => statements.unfinished.all(),
    newest: (count) => statements.newest.all(count),
    setUnit: (unit, state, bin) =>
      void statements.setUnit.run(state, bin, unit.order_id, unit.line_id, unit.unit),
    addKnownDropped: (id, lineId) => void statements.addKnownDropped.run(id, lineId),
    prepare: (id, at, bins) => void statements.prepare.run(at, JSON.stringify(bins), id),
    setReady: (id, at, bins) => void statements.setReady.run(at, JSON.stringify(bins), id),
    setCollecting: (id, at) => void statements.setCollecting.run(at, id),
    end: (id, phase, at, reason) => void statements.end.run(phase, at, reason, id),
    deleteAll: () => void statements.deleteAll.run(),
    prune: (kept) => void statements.prune.run(kept),
  }
}
