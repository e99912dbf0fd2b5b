import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import { all, one, run } from './statements.ts'
import type { Store } from './store.ts'

export interface CommandRow {
  id: string
  /** `CommandBody`, JSON. */
  body: string
  is_local: 0 | 1
  /** Null while its operations run. */
  outcome: CommandResult['outcome'] | null
  reason: CommandReason | null
  /** JSON: the outcome's data; of an open command, what is known of it already. */
  data: string | null
}

export interface CommandEnd {
  outcome: CommandResult['outcome']
  reason: CommandReason | null
  data: Record<string, unknown> | null
}

export type Commands = ReturnType<typeof createCommands>

/** Every command that the hub took on, with its outcome: a repeated one is answered, not executed. */
export function createCommands({ db }: Store) {
  const finish = run(
    db.prepare<[CommandEnd['outcome'], CommandReason | null, data: string | null, id: string]>(
      'UPDATE commands SET outcome = ?, reason = ?, data = ? WHERE id = ?',
    ),
  )
  const setData = run(db.prepare<[data: string, id: string]>('UPDATE commands SET data = ? WHERE id = ?'))
  return {
    insert: run(
      db.prepare<[Pick<CommandRow, 'id' | 'body' | 'is_local'>]>(
        'INSERT INTO commands (id, body, is_local) VALUES (@id, @body, @is_local)',
      ),
    ),
    find: one(db.prepare<[id: string], CommandRow>('SELECT * FROM commands WHERE id = ?')),
    /** Those without an outcome. */
    open: all(db.prepare<[], CommandRow>('SELECT * FROM commands WHERE outcome IS NULL ORDER BY number')),
    /** Keeps what is known of an open command already. */
    setInterim: (id: string, data: unknown) => setData(JSON.stringify(data), id),
    finish: (id: string, { outcome, reason, data }: CommandEnd) =>
      finish(outcome, reason, data && JSON.stringify(data), id),
    prune: run(
      db.prepare<[kept: number]>(
        'DELETE FROM commands WHERE outcome IS NOT NULL AND number <= (SELECT max(number) FROM commands) - ?',
      ),
    ),
  }
}
