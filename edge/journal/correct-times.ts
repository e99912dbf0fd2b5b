import type { Store } from './store.ts'
import type { Table } from './table.ts'
import { businessTables } from './tables.ts'

/** What this life of the hub believed of the time until the cloud said otherwise. */
export interface TimeCorrection {
  /**
   * The first instant of this life, as it was believed: what is dated from then on belongs to this life. -Infinity if no
   * earlier life has heard the cloud either: all of them went by clocks that nobody had set right.
   */
  since: number
  /** By how much later than believed it was; negative where the clock was ahead. */
  byMs: number
}

/** The columns of each table that contain instants. */
const instantsOf = ({ columns }: Table): string[] =>
  Object.keys(columns).filter((name) => columns[name]!.isInstant)
const dated = businessTables.filter((table) => instantsOf(table).length > 0)

/** The latest instant in the journal. Of entries that wait for the cloud the newest counts: a life dates them in order. */
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
 * Corrects the instants in the journal that were dated by a wrong clock: until the cloud's first message the hub has only its own
 * (`cloud-clock.ts`), and the cloud's may be corrected later. The instants of this life move by the error of its clock. Of those
 * of earlier lives only one thing is known: they lie in the past. Without this a count would be compared with drops on the
 * wrong side of it, and deadlines would pass at once, or wait for years.
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

/** Entries that the cloud has not acknowledged. Their sequence numbers and tags stay: a cloud that has one already keeps it. */
const entries = ['outbox_ledger', 'outbox_telemetry', 'held_entries'] as const
/** The names of instants in the bodies of entries, at any depth (MQTT SPEC §10, §11; `hub-entries.ts`). */
const instants: readonly string[] = ['at', 'since', 'started_at', 'ended_at']

function correctEntries(
  db: Store['db'],
  table: (typeof entries)[number],
  correct: (at: number) => number,
): void {
  const update = db.prepare<[body: string, row: number]>(`UPDATE ${table} SET body = ? WHERE rowid = ?`)
  const rows = db.prepare<[], { row: number; body: string }>(`SELECT rowid AS row, body FROM ${table}`).all()
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
