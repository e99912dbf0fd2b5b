import type { z } from 'zod'
import type { OwnerProduct } from '../../../protocol/contract/owner-inventory.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesHub } from '../../platform/credentials/hub-access.ts'
import { ApiError } from '../../platform/api-error.ts'
import { isUniqueViolation, type Tx } from '../../platform/store/database.ts'
import { inventoryRows, ownerProduct } from './inventory-view.ts'
import { countStock } from './stock-counts.ts'

export interface ProductRequest {
  productId: number
  credential: OwnerCredential
}

type Product = z.infer<typeof OwnerProduct>
/** What may be set directly; stock is counted instead. */
export type NewValue = { original_price: number } | { purchase_price: number } | { upc: string }

/**
 * Sets one value of a product, with its audit record, in one transaction. Throws `product_not_found` also for a product of a
 * hub that the credential does not reach, and `duplicate_upc`.
 */
export function updateProduct(
  context: CloudContext,
  request: ProductRequest,
  { action, value }: { action: string; value: NewValue },
): Promise<Product> {
  return context.db.transact(async (tx) => {
    const before = await lockProduct(tx, request)
    await set(tx, before.id, value)
    for (const [column, to] of Object.entries(value) as [keyof typeof before, number | string][])
      await audit(tx, context, request, before, { action, from: before[column] ?? '', to })
    return readAgain(tx, before.id)
  })
}

/** Takes a count of a product's stock (design §2): shown at once, confirmed by the hub's own ledger. */
export function countProduct(
  context: CloudContext,
  request: ProductRequest,
  quantity: number,
): Promise<Product> {
  return context.db.transact(async (tx) => {
    const before = await lockProduct(tx, request)
    const facing = await tx.q
      .selectFrom('facings')
      .select('product_id')
      .where('product_id', '=', before.id)
      .executeTakeFirst()
    if (!facing) throw new ApiError('product_not_found', 'The product has no place at its hub.')
    const count = { hubId: before.hub_id, productId: before.id, quantity }
    const { count_id } = await countStock(tx, context, count)
    const change = { action: 'inventory.update_quantity', from: before.quantity, to: quantity, count_id }
    await audit(tx, context, request, before, change)
    return readAgain(tx, before.id)
  })
}

async function lockProduct(tx: Tx, { productId, credential }: ProductRequest) {
  const product = await tx
    .forUpdate(tx.q.selectFrom('products').selectAll().where('id', '=', productId).where('is_active', '=', 1))
    .executeTakeFirst()
  if (product) {
    const hub = await tx.q
      .selectFrom('hubs')
      .select(['id', 'owner_id'])
      .where('id', '=', product.hub_id)
      .executeTakeFirstOrThrow()
    if (reachesHub(credential, hub)) return product
  }
  throw new ApiError('product_not_found')
}

async function set(tx: Tx, productId: number, value: NewValue): Promise<void> {
  try {
    await tx.savepoint(() => tx.q.updateTable('products').set(value).where('id', '=', productId).execute())
  } catch (error) {
    if (isUniqueViolation(error)) throw new ApiError('duplicate_upc')
    throw error
  }
}

async function audit(
  tx: Tx,
  { runtime }: CloudContext,
  { credential }: ProductRequest,
  product: { id: number; hub_id: number },
  { action, ...detail }: { action: string; from: number | string; to: number | string; count_id?: string },
): Promise<void> {
  await appendAudit(tx.q, runtime, {
    actor: credential.actor,
    action,
    hubId: product.hub_id,
    object: `product-${product.id}`,
    result: 'executed',
    detail,
  })
}

const readAgain = async (tx: Tx, productId: number): Promise<Product> =>
  ownerProduct(await inventoryRows(tx.q).where('products.id', '=', productId).executeTakeFirstOrThrow())
