import type { Store } from './store.ts'

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

/** The latest instant in the journal. Of entries that wait for the cloud the newest counts: a life dates them in order. */
export function latestTime({ db }: Store): number {
  const newest = (table: string, order: string): string =>
    `SELECT * FROM (SELECT body ->> '$.at' FROM ${table} ORDER BY ${order} DESC LIMIT 1)`
  const small = dated.flatMap(([table, columns]) =>
    columns.map((column) => `SELECT max(${column}) FROM ${table}`),
  )
  return (
    db
      .prepare<[], number | null>(
        `SELECT max(at) FROM (
           SELECT max(at) AS at FROM stock_ledger
           UNION ALL SELECT max(intent_at) FROM operations
           UNION ALL SELECT max(ended_at) FROM operations
           UNION ALL SELECT max(max(coalesce(preparing_at, 0), coalesce(ready_at, 0), coalesce(collecting_at, 0)))
             FROM orders WHERE ended_at IS NULL
           UNION ALL ${newest('outbox_ledger', 'seq')}
           UNION ALL ${newest('outbox_telemetry', 'seq')}
           UNION ALL ${newest('held_entries', 'number')}
           ${small.map((query) => `UNION ALL ${query}`).join(' ')})`,
      )
      .pluck()
      .get() ?? 0
  )
}

/**
 * Puts right what the journal has dated by a clock that was wrong: until the cloud's first word the hub has only its own
 * (`cloud-clock.ts`), and later the cloud's may be put right. What this life has dated moves by as much as its clock was wrong; of what earlier lives have,
 * only that is known: it lies in the past. A count would otherwise take what fell after it for something before it, or the
 * other way round, and deadlines would pass at once, or wait for years.
 */
export function correctTimes({ db, reread }: Store, now: number, { since, byMs }: TimeCorrection): void {
  const corrected = (column: string): string =>
    `${column} = min(${column} + CASE WHEN ${column} >= @since THEN @byMs ELSE 0 END, @now)`
  const columns = (...names: string[]): string => names.map(corrected).join(', ')
  const times = { now, since, byMs }
  const from = Math.min(since, now)
  db.prepare<typeof times & { from: number }>(
    `UPDATE stock_ledger SET ${columns('at')} WHERE at >= @from`,
  ).run({ ...times, from })
  db.prepare<typeof times & { from: number }>(
    `UPDATE operations SET ${columns('intent_at', 'ended_at')} WHERE intent_at >= @from OR ended_at >= @from`,
  ).run({ ...times, from })
  db.prepare<typeof times>(
    `UPDATE orders SET ${columns('preparing_at', 'ready_at', 'collecting_at')} WHERE ended_at IS NULL`,
  ).run(times)
  for (const [table, columns_] of dated)
    db.prepare<typeof times>(`UPDATE ${table} SET ${columns(...columns_)}`).run(times)
  const correct = (at: number): number => Math.min(at + (at >= since ? byMs : 0), now)
  for (const table of entries) correctEntries(db, table, correct)
  reread()
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

/** Small tables, of which every row is looked at. */
const dated = [
  ['fridges', ['warm_since', 'read_at', 'shutoff_at']],
  ['row_faults', ['failed_at']],
  ['told_states', ['since']],
  ['alarms', ['raised_at']],
  ['acceptances', ['begun_at', 'ended_at']],
  ['acceptance_attempts', ['at']],
  ['dead_letters', ['at']],
] as const
