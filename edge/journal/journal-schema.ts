import { createHash } from 'node:crypto'
import type { Database } from 'better-sqlite3'
import { StorageError } from './storage-error.ts'

/**
 * The row of `journal_schema`: the owner of the journal, and digests of its tables. A journal belongs to one
 * hub. Another hub that used it would report a foreign history and empty its own stock. A table that was
 * edited in place would fail only later, so each start compares steps and tables.
 */
interface StoredSchema {
  hubId: number | null
  /** The digest of each migration that created the tables, in order. */
  steps: string[]
  /** The digest of each table. Tables that a person added are ignored. */
  tables: Record<string, string>
  /** The version of the service that ran the last step. */
  software: string
}

/** Another version created the journal, or a person changed its tables. The service has changed nothing. */
export class JournalRefused extends Error {
  override readonly name = 'JournalRefused'
}

/** One migration of the journal's tables. It must not change after its release; its place in the list is its number. */
export interface Migration {
  name: string
  sql: string
}

const TABLE = 'journal_schema'

const digestOf = (lines: readonly string[]): string =>
  createHash('sha256').update(lines.join('\n')).digest('hex').slice(0, 16)

/** The digest ignores comments and spaces. */
export const stepDigest = ({ sql }: Migration): string =>
  digestOf([sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, ' ').trim()])

/** The digest of each table with its indexes, from SQLite's schema. */
function tableDigests(db: Database): Record<string, string> {
  const rows = db
    .prepare<[], { name: string; sql: string }>(
      `SELECT tbl_name AS name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL
       AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type DESC, sqlite_master.name`,
    )
    .all()
  const names = new Set(rows.map(({ name }) => name))
  return Object.fromEntries(
    [...names].map((name) => [name, digestOf(rows.filter((row) => row.name === name).map(({ sql }) => sql))]),
  )
}

/** Stores the digests of the tables, in the transaction of their migration. */
export function storeSchema(
  db: Database,
  done: readonly Migration[],
  { hubId, software }: { hubId: number | undefined; software: string },
): void {
  db.exec(`CREATE TABLE IF NOT EXISTS ${TABLE} (schema TEXT NOT NULL) STRICT`)
  const schema: StoredSchema = {
    hubId: hubId ?? readSchema(db)?.hubId ?? null,
    steps: done.map(stepDigest),
    tables: tableDigests(db),
    software,
  }
  db.exec(`DELETE FROM ${TABLE}`)
  db.prepare<[string]>(`INSERT INTO ${TABLE} (schema) VALUES (?)`).run(JSON.stringify(schema))
}

function readSchema(db: Database): StoredSchema | undefined {
  const hasTable = db.prepare('SELECT 1 FROM sqlite_master WHERE name = ?').get(TABLE) !== undefined
  const text = hasTable ? db.prepare<[], string>(`SELECT schema FROM ${TABLE}`).pluck().get() : undefined
  return text === undefined ? undefined : (JSON.parse(text) as StoredSchema)
}

/**
 * Throws `JournalRefused` if this service must not use the journal, and a `StorageError` if the journal
 * belongs to another hub. Only reads. A file without tables passes.
 */
export function judgeJournal(
  db: Database,
  migrations: readonly Migration[],
  hubId: number | undefined,
): void {
  const done = Number(db.pragma('user_version', { simple: true }))
  if (done === 0) return
  if (done > migrations.length)
    throw new JournalRefused(
      `the journal has version ${done}, this software knows ${migrations.length}: it was written by newer software. Install that version again`,
    )
  const stored = readSchema(db)
  if (stored === undefined)
    throw new JournalRefused(
      'an older build made its tables, and this build has no migration for them. Install that build again, or name a new file',
    )
  const expected = migrations.slice(0, done).map(stepDigest)
  if (expected.some((digest, index) => stored.steps[index] !== digest))
    throw new JournalRefused(
      `build ${stored.software} made its tables, and this build has no migration for them. Install that build again, or name a new file`,
    )
  const now = tableDigests(db)
  const changed = Object.keys(stored.tables).filter((name) => stored.tables[name] !== now[name])
  if (stored.steps.length === done && changed.length > 0)
    throw new JournalRefused(
      `a person has changed its ${changed.length === 1 ? 'table' : 'tables'} ${changed.join(', ')} by hand. Undo the change, or name a new file`,
    )
  if (hubId !== undefined && stored.hubId !== null && stored.hubId !== hubId)
    throw new StorageError(
      'foreign_journal',
      `it is the journal of hub ${stored.hubId}, and HARDWARE describes hub ${hubId}`,
    )
}
