import { gzipSync } from 'node:zlib'
import { onTestFinished } from 'vitest'
import type { CloudContext } from '../../cloud/platform/context.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'

/** Stands in for the due work that fetches the log of a hub: answers each request. `after` runs while a call waits. */
export function answerLogs(
  { db }: Pick<CloudContext, 'db'>,
  records: readonly object[],
  after: () => void = () => {},
): void {
  const content = gzipSync(records.map((record) => JSON.stringify(record)).join('\n')).toString('base64')
  const answer = { state: 'done', content, cursor: 'run.1' } as const
  const timer = setInterval(() => {
    void db.kysely
      .updateTable('diagnoses')
      .set(answer)
      .executeTakeFirst()
      .then(
        ({ numUpdatedRows }) => numUpdatedRows > 0n && after(),
        // The test has ended, and its database with it.
        () => {},
      )
  }, 20)
  onTestFinished(() => clearInterval(timer))
}

/** Stores a session of hub 1 that is connected for a minute from `now`. */
export async function connectSession({ kysely }: CloudDatabase, now: number): Promise<void> {
  await kysely
    .insertInto('hub_sessions')
    .values({
      hub_id: 1,
      session: 'a'.repeat(32),
      instance: null,
      hello_monotonic: null,
      software: 'larder-edge',
      stalled: null,
      process_id: 'cloud-1',
      is_connected: 1,
      has_left: 0,
      lease_until: now + 60_000,
      last_heard_at: now,
      health_at: null,
      health_monotonic: null,
      health: null,
    })
    .execute()
}
