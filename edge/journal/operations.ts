import { refusals, type Action } from '../../protocol/serial/frames.ts'
import type { UnitKey } from './orders.ts'
import { all, one, run, writer } from './statements.ts'
import type { Store } from './store.ts'

/** Why an operation came to nothing that was never written to the line: it does not count as a try. */
export const NEVER_SENT = 'never'

/**
 * `open`: the intent is journaled, the outcome not known yet. `nothing`: it never moved anything. `unknown`: nobody can
 * say (I1). `settled`: a count or a person said.
 */
export type OperationPhase = 'open' | 'done' | 'failed' | 'nothing' | 'unknown' | 'settled'

/** What says of an operation of unknown outcome whether it happened. */
export type Settler = 'sensor' | 'count' | 'person'

export interface OperationRow {
  number: number
  id: string
  controller: string
  device: string
  action: Action
  max_ms: number
  shelf: number | null
  row: number | null
  bin: number | null
  ref: string | null
  memory_id: string | null
  state: OperationPhase
  why: string | null
  moved: 0 | 1
  drops: number
  ms: number
  order_id: string | null
  line_id: number | null
  unit: number | null
  product_id: number | null
  command_id: string | null
  imported: 0 | 1
  recheck: 0 | 1
  intent_at: number
  ended_at: number | null
  settled_by: Settler | null
  happened: 0 | 1 | null
}

/** What most new operations do not say. */
const unsaid = {
  shelf: null,
  row: null,
  bin: null,
  ref: null,
  memory_id: null,
  why: null,
  moved: 1,
  drops: 0,
  ms: 0,
  order_id: null,
  line_id: null,
  unit: null,
  product_id: null,
  command_id: null,
  imported: 0,
  ended_at: null,
  settled_by: null,
  happened: null,
} as const satisfies Partial<OperationRow>
type Said = 'id' | 'controller' | 'device' | 'action' | 'max_ms' | 'state' | 'intent_at'
export type NewOperation = Pick<OperationRow, Said> & Partial<Pick<OperationRow, keyof typeof unsaid>>
export type OperationEnd = Pick<OperationRow, 'state' | 'why' | 'moved' | 'drops' | 'ms' | 'ended_at'>

const said: readonly Said[] = ['id', 'controller', 'device', 'action', 'max_ms', 'state', 'intent_at']
const columns = [...said, ...Object.keys(unsaid)]

/** Why an operation came to nothing that its controller does not remember: it was never sent, or refused. */
const notHeld = [NEVER_SENT, ...refusals].map((why) => `'${why}'`).join(', ')

const isUnfinished = ({ state }: OperationRow): boolean => state === 'open' || state === 'unknown'

export type Operations = ReturnType<typeof createOperations>

/**
 * Every actuation, by its id: the intent before its first byte, and what became of it (I1). Those that are open or unknown
 * are few, asked for many times in an event, and kept in memory.
 */
export function createOperations(store: Store) {
  const { db } = store
  const where = (condition: string) => `SELECT * FROM operations WHERE ${condition} ORDER BY number`
  const insert = one(
    db.prepare<[NewOperation], OperationRow>(
      `INSERT INTO operations (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})
     RETURNING *`,
    ),
  )
  const loadUnfinished = all(db.prepare<[], OperationRow>(where(`state IN ('open', 'unknown')`)))
  /** By number, in the order of the numbers. */
  const unfinished = store.keep(() => new Map(loadUnfinished().map((row) => [row.number, row])))
  const loadOfOrder = all(db.prepare<[orderId: string], OperationRow>(where('order_id = ?')))
  const ofOrder = store.keepBy((orderId: string): readonly OperationRow[] => loadOfOrder(orderId))
  const end = one(
    db.prepare<[OperationEnd & { id: string }], OperationRow>(
      `UPDATE operations SET state = @state, why = @why, moved = @moved, drops = @drops, ms = @ms, ended_at = @ended_at
     WHERE id = @id RETURNING *`,
    ),
  )
  const settle = one(
    db.prepare<[settled: { id: string; by: Settler; happened: 0 | 1 }], OperationRow>(
      'UPDATE operations SET settled_by = @by, happened = @happened WHERE id = @id RETURNING *',
    ),
  )
  const recheck = one(
    db.prepare<[recheck: 0 | 1, id: string], OperationRow>(
      'UPDATE operations SET recheck = ? WHERE id = ? RETURNING *',
    ),
  )
  const rechecks = all(
    db.prepare<[controller: string], OperationRow>(where('recheck = 1 AND controller = ?')),
  )
  const account = one(
    db.prepare<[OperationRow], OperationRow>(
      `UPDATE operations SET imported = 0, state = @state, order_id = @order_id, line_id = @line_id, unit = @unit,
       product_id = @product_id WHERE id = @id RETURNING *`,
    ),
  )
  const findAny = one(db.prepare<[id: string], OperationRow>('SELECT * FROM operations WHERE id = ?'))
  const deleteAll = run(db.prepare<[]>('DELETE FROM operations'))

  /** Writes a row, and keeps what it is then. */
  function write(statement: () => OperationRow | undefined): void {
    const rows = unfinished.get()
    const row = statement()
    if (!row) return
    if (row.order_id !== null) ofOrder.forget(row.order_id)
    if (isUnfinished(row)) rows.set(row.number, row)
    else rows.delete(row.number)
  }

  const inState = (state: OperationPhase): OperationRow[] =>
    [...unfinished.get().values()].filter((row) => row.state === state)

  return {
    insert: (operation: NewOperation) => write(() => insert({ ...unsaid, ...operation })),
    find: (id: string): OperationRow | undefined =>
      [...unfinished.get().values()].find((row) => row.id === id) ?? findAny(id),
    /** Records what became of it. */
    end: (id: string, { state, why, moved, drops, ms, ended_at }: OperationEnd) =>
      write(() => end({ id, state, why, moved, drops, ms, ended_at })),
    /** Records by what it was settled, and how. */
    settle: (id: string, by: Settler, happened: boolean) =>
      write(() => settle({ id, by, happened: happened ? 1 : 0 })),
    settledSince: all(
      db.prepare<[since: number], OperationRow>(where('settled_by IS NOT NULL AND ended_at >= ?')),
    ),
    open: () => inState('open'),
    unknown: () => inState('unknown'),
    /** What the controller is to be asked about: open, unknown, and those of which a unit fell late. */
    questionsFor: (controller: string): OperationRow[] =>
      [
        ...[...unfinished.get().values()].filter((row) => row.controller === controller),
        ...rechecks(controller).filter((row) => !isUnfinished(row)),
      ].toSorted((a, b) => a.number - b.number),
    markRecheck: (id: string, isDue: boolean) => write(() => recheck(isDue ? 1 : 0, id)),
    ofUnit: ({ order_id, line_id, unit }: UnitKey): OperationRow[] =>
      ofOrder.get(order_id).filter((row) => row.line_id === line_id && row.unit === unit),
    /** Dispenses of a controller's memory that fell before this store was begun, and that the cloud counted then. */
    knownSince: all(
      db.prepare<[since: number], OperationRow>(
        `SELECT operations.* FROM operations JOIN known_operations USING (id)
         WHERE action = 'dispense' AND state = 'done' AND ended_at >= ? ORDER BY number`,
      ),
    ),
    /** Of a controller's memory, with this note, and of no order yet. */
    ofNote: all(
      db.prepare<[ref: string], OperationRow>(where('ref = ? AND imported = 0 AND order_id IS NULL')),
    ),
    ofCommand: all(db.prepare<[commandId: string], OperationRow>(where('command_id = ?'))),
    /** Taken over from controllers' memories, and not accounted for yet. */
    imported: all(db.prepare<[], OperationRow>(where('imported = 1'))),
    /** Accounts for an operation of a controller's memory: what it was for is known, as far as it can be. */
    account: (operation: OperationRow) => write(() => account(operation)),
    deleteAll(): void {
      deleteAll()
      unfinished.forget()
      ofOrder.forget()
    },
    /**
     * Deletes finished ones but the newest `kept` of each controller's memory. Those that the memory never held are counted
     * apart: the newest that it holds must stay known, or the journal would be taken for an older copy of itself.
     */
    prune: writer(ofOrder)(
      db.prepare<[kept: number]>(
        `DELETE FROM operations WHERE state NOT IN ('open', 'unknown') AND recheck = 0 AND number IN (
         SELECT number FROM (
           SELECT number, row_number() OVER (
             PARTITION BY controller, memory_id, state = 'nothing' AND why IN (${notHeld})
             ORDER BY number DESC) AS age FROM operations)
         WHERE age > ?)`,
      ),
    ),
  }
}
