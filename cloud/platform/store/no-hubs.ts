import type { Log } from '../../../protocol/model/log.ts'
import type { Queries } from './database.ts'
import { placeOf } from './outage.ts'

/**
 * Says where a database has no hubs at all: true where it has none. That is how each one begins, and how one looks whose
 * file was lost, or that is not the one that was meant; the service would go on without a word, and know nobody.
 */
export async function warnWithoutHubs(q: Queries, log: Log, databaseUrl: string): Promise<boolean> {
  const hub = await q.selectFrom('hubs').select('id').limit(1).executeTakeFirst()
  if (hub) return false
  const database = placeOf(databaseUrl)
  log.warn(
    { database },
    `DATABASE_URL: ${database} has no hubs. Where hubs have been served before, it was lost or is another one: stop the service and put a backup in its place. Where none have been, \`npm run hubs -- create\` makes the first`,
  )
  return true
}
