import type { Store } from './store.ts'
import type { Table } from './table.ts'
import { businessTables } from './tables.ts'

/** The error of this process's clock until the cloud corrected it. */
export interface TimeCorrection {
  /**
   * The first instant of this process by its old clock; later instants belong to this process. -Infinity if
   * no earlier process received the cloud's time either: then no process had a correct clock.
   */
  since: number
  /** Milliseconds by which the real time is later than the old clock; negative if the clock was ahead. */
  byMs: number
}

/** The columns of each table that contain instants. */
const instantsOf = ({ columns }: Table): string[] =>
  Object.keys(columns).filter((name) => columns[name]!.isInstant)
const dated = businessTables.filter((table) => instantsOf(table).length > 0)

/**
 * The latest instant in the journal. For entries that wait for the cloud, the newest entry is enough: a
 * process dates them in order.
 */
export function latestTime({ db }: Store): number {
  const columns = dated.flatMap((table) =>
    instantsOf(table).map((column) => `SELECT max(${column}) AS at FROM ${table.name}`),
  )
  const newest = entries.map(
    (table) => `SELECT * FROM (SELECT body ->> '$.at' FROM ${table} ORDER BY rowid DESC LIMIT 1)`,
  )
  const all = [...columns, ...newest].join(' UNION ALL ')
  return db.prepare<[], number | null>(`SELECT max(at) FROM (${all})`).pluck().get() ?? 0
}

/**
 * Corrects the instants in the journal that a wrong clock dated. Until the cloud's first message the hub has
 * only its own clock (`cloud-clock.ts`), and the cloud's time may be corrected later.
 *
 * - Instants of this process move by the error of its clock.
 * - Instants of earlier processes are limited to the past; nothing else is known about them.
 *
 * Without this correction a count could be compared with the wrong drops. Deadlines could pass at once, or
 * last for years.
 */
export function correctTimes(store: Store, now: number, { since, byMs }: TimeCorrection): void {
  const { db } = store
  store.save()
  const times = { now, since, byMs, from: Math.min(since, now) }
  for (const table of dated) {
    const columns = instantsOf(table)
    const corrected = columns.map(
      (column) => `${column} = min(${column} + CASE WHEN ${column} >= @since THEN @byMs ELSE 0 END, @now)`,
    )
    const isLate = columns.map((column) => `${column} >= @from`).join(' OR ')
    db.prepare<typeof times>(`UPDATE ${table.name} SET ${corrected.join(', ')} WHERE ${isLate}`).run(times)
  }
  const correct = (at: number): number => Math.min(at + (at >= since ? byMs : 0), now)
  for (const table of entries) correctEntries(db, table, correct)
  store.reread()
}

/**
 * Tables of unacknowledged entries. Sequence numbers and tags stay, so a cloud that already has an entry does
 * not get it twice.
 */
const entries = ['outbox_ledger', 'outbox_telemetry', 'held_entries'] as const
/** Entries in memory at once: after weeks without a connection there are 50,000. */
const PAGE = 500
/** The names of instants in entry bodies, at any depth (MQTT SPEC §10, §11; `hub-entries.ts`). */
const instants: readonly string[] = ['at', 'since', 'started_at', 'ended_at']

function correctEntries(
  db: Store['db'],
  table: (typeof entries)[number],
  correct: (at: number) => number,
): void {
  const update = db.prepare<[body: string, row: number]>(`UPDATE ${table} SET body = ? WHERE rowid = ?`)
  const page = db.prepare<[after: number], { row: number; body: string }>(
    `SELECT rowid AS row, body FROM ${table} WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE}`,
  )
  for (let rows = page.all(0); rows.length > 0; rows = page.all(rows.at(-1)!.row))
    for (const { row, body } of rows) {
      const corrected = JSON.stringify(withTimes(JSON.parse(body), correct))
      if (corrected !== body) update.run(corrected, row)
    }
}

/** An entry with its instants corrected. */
export function withTimes(value: unknown, correct: (at: number) => number): unknown {
  if (Array.isArray(value)) return value.map((item) => withTimes(item, correct))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]: [string, unknown]) => [
      key,
      typeof item === 'number' && instants.includes(key) ? correct(item) : withTimes(item, correct),
    ]),
  )
}
