import { sql } from 'kysely'
import { expect, vi } from 'vitest'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'

/**
 * Returns when this number of transactions wait for a lock of PostgreSQL. On SQLite at once: it executes one transaction
 * at a time, so others wait for the caller's whole transaction.
 */
export async function lockWaits({ kind, kysely }: CloudDatabase, count = 1): Promise<void> {
  if (kind === 'sqlite') return
  await vi.waitFor(async () => {
    const waiting = await sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(kysely)
    expect(waiting.rows).toHaveLength(count)
  }, 20_000)
}
