import type { CommandReason, CommandResult } from '../../protocol/mqtt/command.ts'
import { all, one, run, writer } from './statements.ts'
import type { Store } from './store.ts'

export interface CommandRow {
  id: string
  /** `CommandBody`, JSON. */
  body: string
  is_local: 0 | 1
  /** JSON of `LocalActor`; null for commands of the cloud. */
  local_actor: string | null
  /** Null while its operations run. */
  outcome: CommandResult['outcome'] | null
  reason: CommandReason | null
  /** JSON: the outcome's data; of an open command, what is known of it already. */
  data: string | null
}

export type NewCommand = Pick<CommandRow, 'id' | 'body' | 'is_local' | 'local_actor'>

export interface CommandEnd {
  outcome: CommandResult['outcome']
  reason: CommandReason | null
  data: Record<string, unknown> | null
}

export type Commands = ReturnType<typeof createCommands>

/**
 * Every command that the hub took on, with its outcome: a repeated one is answered, not executed. Those without an outcome are
 * few, asked for at each end of an operation of theirs, and kept in memory.
 */
export function createCommands(store: Store) {
  const { db } = store
  const select = 'SELECT id, body, is_local, local_actor, outcome, reason, data FROM commands'
  const loadOpen = all(db.prepare<[], CommandRow>(`${select} WHERE outcome IS NULL ORDER BY number`))
  const open = store.keep(() => new Map(loadOpen().map((row) => [row.id, row])))
  const insert = run(
    db.prepare<[NewCommand]>(
      'INSERT INTO commands (id, body, is_local, local_actor) VALUES (@id, @body, @is_local, @local_actor)',
    ),
  )
  const findAny = one(db.prepare<[id: string], CommandRow>(`${select} WHERE id = ?`))
  const finish = run(
    db.prepare<[CommandEnd['outcome'], CommandReason | null, data: string | null, id: string]>(
      'UPDATE commands SET outcome = ?, reason = ?, data = ? WHERE id = ?',
    ),
  )
  const setData = writer(open)(
    db.prepare<[data: string, id: string]>('UPDATE commands SET data = ? WHERE id = ?'),
  )
  return {
    insert(command: NewCommand): void {
      const rows = open.get()
      insert(command)
      rows.set(command.id, { ...command, outcome: null, reason: null, data: null })
    },
    find: (id: string): CommandRow | undefined => open.get().get(id) ?? findAny(id),
    /** Those without an outcome. */
    open: (): CommandRow[] => [...open.get().values()],
    /** Keeps what is known of an open command already. */
    setInterim: (id: string, data: unknown) => setData(JSON.stringify(data), id),
    finish(id: string, { outcome, reason, data }: CommandEnd): void {
      const rows = open.get()
      finish(outcome, reason, data && JSON.stringify(data), id)
      rows.delete(id)
    },
    prune: run(
      db.prepare<[kept: number]>(
        'DELETE FROM commands WHERE outcome IS NOT NULL AND number <= (SELECT max(number) FROM commands) - ?',
      ),
    ),
  }
}
