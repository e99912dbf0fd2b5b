import type { Derivation, Tx } from '../platform/store/database.ts'

/**
 * Derives data of a hub at the end of the transaction, once per name. Concurrent transactions wait here for each other.
 * So the last one reads the changes of all others.
 */
export const deriveOfHub = (tx: Tx, hubId: number, name: string, derive: Derivation): void =>
  tx.beforeCommit(`${name} of hub ${hubId}`, async () => {
    await lockPublished(tx, [hubId])
    return derive()
  })

/** The published state of a hub without any publication. */
export const UNPUBLISHED = { acceptingOrders: null, bins: {}, fridges: {}, storage: null }

/** Locks the published state of hubs. It is a transaction's last lock, except for alarms. */
export async function lockPublished(tx: Tx, hubIds: readonly number[]): Promise<void> {
  const lock = () =>
    tx
      .forUpdate(tx.q.selectFrom('hub_told').select('hub_id').where('hub_id', 'in', hubIds).orderBy('hub_id'))
      .execute()
  if ((await lock()).length === hubIds.length) return
  await tx.q
    .insertInto('hub_told')
    .columns(['hub_id', 'online', 'state'])
    .expression((eb) =>
      eb
        .selectFrom('hubs')
        .select(['id', eb.lit(0).as('online'), eb.val(JSON.stringify(UNPUBLISHED)).as('state')])
        .where('id', 'in', hubIds)
        .orderBy('id'),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  await lock()
}
