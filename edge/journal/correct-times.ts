import type { Store } from './store.ts'

/** What this life of the hub believed of the time until the cloud said otherwise. */
export interface TimeCorrection {
  /** The first instant of this life, as it was believed: what is dated from then on belongs to this life. */
  since: number
  /** By how much later than believed it was; negative where the clock was ahead. */
  byMs: number
}

/** The latest instant in the journal. */
export function latestTime({ db }: Store): number {
  return (
    db
      .prepare<[], number | null>(
        `SELECT max(at) FROM (
           SELECT max(at) AS at FROM stock_ledger
           UNION ALL SELECT max(intent_at) FROM operations
           UNION ALL SELECT max(ended_at) FROM operations
           UNION ALL SELECT max(max(coalesce(preparing_at, 0), coalesce(ready_at, 0), coalesce(collecting_at, 0)))
             FROM orders WHERE ended_at IS NULL)`,
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
  reread()
}

/** Small tables, of which every row is looked at. */
const dated = [
  ['fridges', ['warm_since', 'read_at', 'shutoff_at']],
  ['row_faults', ['failed_at']],
  ['told_states', ['since']],
  ['alarms', ['raised_at']],
  ['acceptances', ['begun_at', 'ended_at']],
  ['acceptance_attempts', ['at']],
] as const
