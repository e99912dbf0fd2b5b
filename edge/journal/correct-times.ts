import type { Store } from './store.ts'

/**
 * Brings back what the journal has dated later than now. Before the cloud has told the time the hub goes by a clock that may
 * be wrong (`cloud-clock.ts`); once it knows, what lies ahead has happened, and not in the future. A count would otherwise
 * take it for something that fell after it, and a deadline would wait for years.
 */
export function correctTimes({ db }: Store, now: number): void {
  const earlier = (column: string): string => `${column} = min(${column}, @now)`
  db.prepare<{ now: number }>('UPDATE stock_ledger SET at = @now WHERE at > @now').run({ now })
  db.prepare<{ now: number }>(
    `UPDATE operations SET ${earlier('intent_at')}, ${earlier('ended_at')} WHERE intent_at > @now OR ended_at > @now`,
  ).run({ now })
  db.prepare<{ now: number }>(
    `UPDATE orders SET ${['preparing_at', 'ready_at', 'collecting_at'].map(earlier).join(', ')} WHERE ended_at IS NULL`,
  ).run({ now })
}
