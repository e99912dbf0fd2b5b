import type { OperationEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { lockItem } from './consume-promises.ts'
import { unreserve } from './availability.ts'

/**
 * An operation of which the hub could not learn what became (I1), or what it learned in the end. An unknown unit passes
 * from the order's promise to the doubtful ones: it may be on the shelf, but nobody is sold it.
 */
export async function applyOperationEntry(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  hubId: number,
  entry: OperationEntry,
): Promise<void> {
  switch (entry.kind) {
    case 'operation.unknown': {
      const inserted = await tx.q
        .insertInto('unknown_operations')
        .values({
          hub_id: hubId,
          operation_id: entry.operation_id,
          device: entry.device,
          action: entry.action,
          reason: entry.reason,
          order_id: entry.order_id,
          item_id: entry.line_id,
          product_id: entry.product_id,
          at: Math.round(entry.at),
          settled_at: null,
          settled_by: null,
          happened: null,
        })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst()
      if (inserted.numInsertedOrUpdatedRows === 1n && entry.line_id !== null)
        await doubtUnit(tx, hubId, entry.line_id)
      return
    }
    case 'operation.settled':
      await tx.q
        .updateTable('unknown_operations')
        .set({
          settled_at: runtime.clock.now(),
          settled_by: entry.by,
          happened: entry.happened ? 1 : 0,
        })
        .where('hub_id', '=', hubId)
        .where('operation_id', '=', entry.operation_id)
        .where('settled_at', 'is', null)
        .execute()
  }
}

async function doubtUnit(tx: Tx, hubId: number, itemId: number): Promise<void> {
  const item = await lockItem(tx, hubId, itemId)
  const freed = Math.min(item.reserved, 1)
  await tx.q
    .updateTable('order_items')
    .set({ reserved: item.reserved - freed, qty_doubtful: item.qty_doubtful + 1 })
    .where('id', '=', itemId)
    .execute()
  await unreserve(tx, [{ productId: item.product_id, quantity: freed }])
}
