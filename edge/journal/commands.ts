import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
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

/** Every command that the hub took on, with its outcome: a repeated one is answered, not executed. */
export interface Commands {
  insert(command: Pick<CommandRow, 'id' | 'body' | 'is_local'>): void
  find(id: string): CommandRow | undefined
  /** Those without an outcome. */
  open(): CommandRow[]
  /** Keeps what is known of an open command already. */
  setInterim(id: string, data: unknown): void
  finish(id: string, end: CommandEnd): void
  /** Ends what is open without an outcome of its own: the store is not the one that began it. */
  abandonAll(): void
  prune(kept: number): void
}

export function createCommands({ db }: Store): Commands {
  const statements = {
    insert: db.prepare<Pick<CommandRow, 'id' | 'body' | 'is_local'>>(
      'INSERT INTO commands (id, body, is_local) VALUES (@id, @body, @is_local)',
    ),
    find: db.prepare<[string], CommandRow>('SELECT * FROM commands WHERE id = ?'),
    open: db.prepare<[], CommandRow>('SELECT * FROM commands WHERE outcome IS NULL ORDER BY number'),
    finish: db.prepare<[string, string | null, string | null, string]>(
      'UPDATE commands SET outcome = ?, reason = ?, data = ? WHERE id = ?',
    ),
    interim: db.prepare<[string, string]>('UPDATE commands SET data = ? WHERE id = ?'),
    abandon: db.prepare<[]>(
      `UPDATE commands SET outcome = 'unknown', reason = 'interrupted' WHERE outcome IS NULL`,
    ),
    prune: db.prepare<[number]>(
      'DELETE FROM commands WHERE outcome IS NOT NULL AND number <= (SELECT max(number) FROM commands) - ?',
    ),
  }
  return {
    insert: (command) => void statements.insert.run(command),
    find: (id) => statements.find.get(id),
    open: () => statements.open.all(),
    setInterim: (id, data) => void statements.interim.run(JSON.stringify(data), id),
    finish: (id, { outcome, reason, data }) =>
      void statements.finish.run(outcome, reason, data && JSON.stringify(data), id),
    abandonAll: () => void statements.abandon.run(),
    prune: (kept) => void statements.prune.run(kept),
  }
}
