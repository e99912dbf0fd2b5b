import type { Action } from '../../protocol/serial/frames.ts'
import type { Store } from './store.ts'

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
  order_id: number | null
  line_id: number | null
  unit: number | null
  product_id: number | null
  command_id: string | null
  imported: 0 | 1
  recheck: 0 | 1
  intent_at: number
  ended_at: number | null
}

export type NewOperation = Omit<OperationRow, 'number' | 'recheck'>
export type OperationEnd = Pick<OperationRow, 'state' | 'why' | 'moved' | 'drops' | 'ms' | 'ended_at'>

export interface Operations {
  insert(operation: NewOperation): void
  find(id: string): OperationRow | undefined
  /** Records what became of it. */
  end(id: string, end: OperationEnd): void
  open(): OperationRow[]
  unknown(): OperationRow[]
  /** What the controller is to be asked about: open, unknown, and those of which a unit fell late. */
  questionsFor(controller: string): OperationRow[]
  markRecheck(id: string, recheck: boolean): void
  ofUnit(orderId: number, lineId: number, unit: number): OperationRow[]
  ofCommand(commandId: string): OperationRow[]
  /** Taken over from controllers' memories, and not accounted for yet. */
  imported(): OperationRow[]
  /** Accounts for an imported operation: what it was for is known, as far as it can be. */
  account(operation: OperationRow): void
  deleteAll(): void
  /** Deletes finished ones but the newest `kept` of each controller. */
  prune(kept: number): void
}

const columns = [
  'id',
  'controller',
  'device',
  'action',
  'max_ms',
  'shelf',
  'row',
  'bin',
  'ref',
  'memory_id',
  'state',
  'why',
  'moved',
  'drops',
  'ms',
  'order_id',
  'line_id',
  'unit',
  'product_id',
  'command_id',
  'imported',
  'intent_at',
  'ended_at',
] as const satisfies (keyof NewOperation)[]

/** As the index of these has it: in these words only it is used. */
const UNFINISHED = `state IN ('open', 'unknown')`

export function createOperations({ db }: Store): Operations {
  const select = (where: string) => `SELECT * FROM operations WHERE ${where} ORDER BY number`
  const statements = {
    insert: db.prepare<NewOperation>(
      `INSERT INTO operations (${columns.join(', ')}) VALUES (${columns.map((column) => `@${column}`).join(', ')})`,
    ),
    find: db.prepare<[string], OperationRow>('SELECT * FROM operations WHERE id = ?'),
    end: db.prepare<OperationEnd & { id: string }>(
      `UPDATE operations SET state = @state, why = @why, moved = @moved, drops = @drops, ms = @ms, ended_at = @ended_at
       WHERE id = @id`,
    ),
    inState: db.prepare<[string], OperationRow>(select(`${UNFINISHED} AND state = ?`)),
    questions: db.prepare<{ controller: string }, OperationRow>(
      select(`controller = @controller AND (${UNFINISHED} OR recheck = 1)`),
    ),
    recheck: db.prepare<[0 | 1, string]>('UPDATE operations SET recheck = ? WHERE id = ?'),
    ofUnit: db.prepare<[number, number, number], OperationRow>(
      select('order_id = ? AND line_id = ? AND unit = ?'),
    ),
    ofCommand: db.prepare<[string], OperationRow>(select('command_id = ?')),
    imported: db.prepare<[], OperationRow>(select('imported = 1')),
    account: db.prepare<OperationRow>(
      `UPDATE operations SET imported = 0, state = @state, order_id = @order_id, line_id = @line_id, unit = @unit,
         product_id = @product_id WHERE id = @id`,
    ),
    deleteAll: db.prepare<[]>('DELETE FROM operations'),
    prune: db.prepare<[number]>(
      `DELETE FROM operations WHERE state NOT IN ('open', 'unknown') AND recheck = 0 AND number IN (
         SELECT number FROM (
           SELECT number, row_number() OVER (PARTITION BY controller ORDER BY number DESC) AS age FROM operations)
         WHERE age > ?)`,
    ),
  }
  return {
    insert: (operation) => void statements.insert.run(operation),
    find: (id) => statements.find.get(id),
    end: (id, end) => void statements.end.run({ id, ...end }),
    open: () => statements.inState.all('open'),
    unknown: () => statements.inState.all('unknown'),
    questionsFor: (controller) => statements.questions.all({ controller }),
    markRecheck: (id, recheck) => void statements.recheck.run(recheck ? 1 : 0, id),
    ofUnit: (orderId, lineId, unit) => statements.ofUnit.all(orderId, lineId, unit),
    ofCommand: (commandId) => statements.ofCommand.all(commandId),
    imported: () => statements.imported.all(),
    account: (operation) => void statements.account.run(operation),
    deleteAll: () => void statements.deleteAll.run(),
    prune: (kept) => void statements.prune.run(kept),
  }
}
