import type { Log } from '../../../protocol/model/log.ts'
import type { Queries } from './database.ts'
import { placeOf } from './outage.ts'

/**
 * Warns of a database that has no hubs at all; returns whether it has none. Every database begins so, and one whose file was
 * lost, or that is not the one that was meant, looks the same: the service would go on without a word, and know nobody.
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
