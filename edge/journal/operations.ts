import { refusals, type Action } from '../../protocol/serial/frames.ts'
import { all, one, run } from './statements.ts'
import type { Store } from './store.ts'

/** Why an operation came to nothing that was never written to the line: it does not count as a try. */
export const NEVER_SENT = 'never'

/**
 * `open`: the intent is journaled, the outcome not known yet. `nothing`: it never moved anything. `unknown`: nobody can
 * say (I1). `settled`: a count or a person said.
 */
export type OperationPhase = 'open' | 'done' | 'failed' | 'nothing' | 'unknown' | 'settled'

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
} as const satisfies Partial<OperationRow>
type Said = 'id' | 'controller' | 'device' | 'action' | 'max_ms' | 'state' | 'intent_at'
export type NewOperation = Pick<OperationRow, Said> & Partial<Pick<OperationRow, keyof typeof unsaid>>
export type OperationEnd = Pick<OperationRow, 'state' | 'why' | 'moved' | 'drops' | 'ms' | 'ended_at'>

const said: readonly Said[] = ['id', 'controller', 'device', 'action', 'max_ms', 'state', 'intent_at']
const columns = [...said, ...Object.keys(unsaid)]

/** Why an operation came to nothing that its controller does not remember: it was never sent, or refused. */
const notHeld = [NEVER_SENT, ...refusals].map((why) => `'${why}'`).join(', ')

/** As the index of these has it: in these words only it is used. */
const UNFINISHED = `state IN ('open', 'unknown')`

export type Operations = ReturnType<typeof createOperations>

/** Every actuation, by its id: the intent before its first byte, and what became of it (I1). */
export function createOperations({ db }: Store) {
  const where = (condition: string) => `SELECT * FROM operations WHERE ${condition} ORDER BY number`
  const insert = run(
    db.prepare<[NewOperation]>(
      `INSERT INTO operations (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})`,
    ),
  )
  const inState = all(db.prepare<[OperationPhase], OperationRow>(where(`${UNFINISHED} AND state = ?`)))
  const end = run(
    db.prepare<[OperationEnd & { id: string }]>(
      `UPDATE operations SET state = @state, why = @why, moved = @moved, drops = @drops, ms = @ms, ended_at = @ended_at
     WHERE id = @id`,
    ),
  )
  const recheck = run(
    db.prepare<[recheck: 0 | 1, id: string]>('UPDATE operations SET recheck = ? WHERE id = ?'),
  )
  return {
    insert: (operation: NewOperation) => insert({ ...unsaid, ...operation }),
    find: one(db.prepare<[id: string], OperationRow>('SELECT * FROM operations WHERE id = ?')),
    /** Records what became of it. */
    end: (id: string, { state, why, moved, drops, ms, ended_at }: OperationEnd) =>
      end({ id, state, why, moved, drops, ms, ended_at }),
    open: () => inState('open'),
    unknown: () => inState('unknown'),
    /** What the controller is to be asked about: open, unknown, and those of which a unit fell late. */
    questionsFor: all(
      db.prepare<[controller: string], OperationRow>(
        where(`controller = ? AND (${UNFINISHED} OR recheck = 1)`),
      ),
    ),
    markRecheck: (id: string, isDue: boolean) => recheck(isDue ? 1 : 0, id),
    ofUnit: all(
      db.prepare<[orderId: string, lineId: number, unit: number], OperationRow>(
        where('order_id = ? AND line_id = ? AND unit = ?'),
      ),
    ),
    ofCommand: all(db.prepare<[commandId: string], OperationRow>(where('command_id = ?'))),
    /** Taken over from controllers' memories, and not accounted for yet. */
    imported: all(db.prepare<[], OperationRow>(where('imported = 1'))),
    /** Accounts for an imported operation: what it was for is known, as far as it can be. */
    account: run(
      db.prepare<[OperationRow]>(
        `UPDATE operations SET imported = 0, state = @state, order_id = @order_id, line_id = @line_id, unit = @unit,
         product_id = @product_id WHERE id = @id`,
      ),
    ),
    deleteAll: run(db.prepare<[]>('DELETE FROM operations')),
    /**
     * Deletes finished ones but the newest `kept` of each controller's memory. Those that the memory never held are counted
     * apart: the newest that it holds must stay known, or the journal would be taken for an older copy of itself.
     */
    prune: run(
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
