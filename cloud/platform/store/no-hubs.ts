import type { Log } from '../../../protocol/model/log.ts'
import type { Queries } from './database.ts'
import { placeOf } from './outage.ts'

/**
 * Warns if a database has no hubs; returns whether it has none. A new database, a lost file and a wrong address look
 * the same: without the warning the service would run silently and know no hub.
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
