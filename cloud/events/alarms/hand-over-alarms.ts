import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { isAboutSale } from './about-sales.ts'
import { end, publishAlarm, WORK, worsens } from './alarms.ts'

/**
 * A hub is moved to another owner, or retired (`newOwner` null). Its alarms end for the former owner, and the new owner
 * gets the open ones. Alarms about sales do not change.
 */
export async function handOverAlarms(
  tx: Tx,
  context: CloudContext,
  { hubId, newOwner }: { hubId: number; newOwner: number | null },
): Promise<void> {
  const open = await tx
    .forUpdate(
      tx.q
        .selectFrom('alarms')
        .selectAll()
        .where('hub_id', '=', hubId)
        .where('cleared_at', 'is', null)
        .orderBy('seq'),
    )
    .execute()
  for (const row of open.filter(({ kind }) => !isAboutSale(kind))) {
    await end(tx, context, row)
    if (newOwner === null) continue
    const { seq: _, ...same } = row
    const passed = await tx.q
      .insertInto('alarms')
      .values({
        ...same,
        id: `alm_${uuidv7(context.runtime)}`,
        owner_id: newOwner,
        count: 1,
        acknowledged_at: null,
        acknowledged_by: null,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    publishAlarm(tx, context, passed, 'alarm.raised')
    if (passed.quiet_since !== null || worsens(passed))
      await schedule(tx, WORK, passed.id, context.runtime.clock.now())
  }
}
