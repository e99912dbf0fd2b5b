import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { StockCount } from '../../../protocol/mqtt/cloud-entries.ts'
import type { StockEntry } from '../../../protocol/mqtt/hub-entries.ts'
import type { CloudContext } from '../../platform/context.ts'
import { enqueue } from '../../gateway/outbox.ts'
import type { Tx } from '../../platform/store/database.ts'
import { sumProducts } from './stock-facings.ts'

/**
 * A count that somebody typed: shown at once, and sent to the hub, which sets its stock to the count less what it dropped
 * after it (design §2). An earlier count of the product that the hub has not confirmed is out of date with it.
 */
export async function countStock(
  tx: Tx,
  { runtime }: Pick<CloudContext, 'runtime'>,
  { hubId, productId, quantity }: { hubId: number; productId: number; quantity: number },
): Promise<StockCount> {
  const now = runtime.clock.now()
  const count = { count_id: uuidv7(runtime), product_id: productId, quantity, counted_at: now }
  await tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('product_id', '=', productId)
    .where('settled_at', 'is', null)
    .execute()
  const { newest } = await tx.q
    .selectFrom('stock_ledger')
    .select((eb) => eb.fn.max('id').as('newest'))
    .executeTakeFirstOrThrow()
  await tx.q
    .insertInto('stock_counts')
    .values({ ...count, hub_id: hubId, ledger_from: newest ?? 0, settled_at: null })
    .execute()
  await sumProducts(tx, [productId])
  await enqueue(tx, hubId, { kind: 'stock.count', count })
  return count
}

/** The hub has taken these counts in: from now on its ledger says what is there. Returns whose they were. */
export async function settleCounts(
  tx: Tx,
  hubId: number,
  entries: readonly StockEntry[],
  now: number,
): Promise<number[]> {
  const ids = new Set(entries.flatMap((entry) => (entry.kind === 'stock.counted' ? [entry.count_id] : [])))
  if (ids.size === 0) return []
  const settled = await tx.q
    .updateTable('stock_counts')
    .set({ settled_at: now })
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .where('count_id', 'in', [...ids])
    .returning('product_id')
    .execute()
  return settled.map(({ product_id }) => product_id)
}

/** What a hub is not known to have taken in yet, oldest first; at most one count of each product. */
export async function pendingCounts(tx: Tx, hubId: number): Promise<StockCount[]> {
  return tx.q
    .selectFrom('stock_counts')
    .select(['count_id', 'product_id', 'quantity', 'counted_at'])
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is', null)
    .orderBy('counted_at')
    .execute()
}
