import type { StorageReport } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { HubDomain } from './domain.ts'
import { maySpeak } from './draining.ts'

/**
 * Records the report of a hub that cannot read its journal (SPEC §3). The hub counts as online but has no streams and
 * gets no commands. Its session replaces the former one, and a process that holds the hub's lease loses it. False if
 * there is no such hub, or if the cloud ignores it.
 */
export async function recordStorageReport(
  { db, runtime, ...context }: CloudContext,
  domain: HubDomain,
  hubId: number,
  { session, instance, software, monotonic, health }: StorageReport,
): Promise<boolean> {
  return db.transact(async (tx) => {
    const now = runtime.clock.now()
    const hub = await tx.q
      .selectFrom('hubs')
      .select('id')
      .where('id', '=', hubId)
      .where((eb) => maySpeak(eb, now))
      .executeTakeFirst()
    if (!hub) return false
    const heard = {
      session,
      instance,
      software,
      hello_monotonic: monotonic,
      is_connected: 0 as const,
      has_left: 0 as const,
      last_heard_at: now,
      health: JSON.stringify(health),
      health_at: now,
      health_monotonic: monotonic,
      lease_until: now,
    }
    await tx.q
      .insertInto('hub_sessions')
      .values({ hub_id: hubId, process_id: '', ...heard })
      .onConflict((conflict) => conflict.column('hub_id').doUpdateSet(heard))
      .execute()
    await domain.hubsHeard(tx, { db, runtime, ...context }, [{ hubId, health }])
    return true
  })
}
