import { sql } from 'kysely'
import type { InventoryProduct } from '../../../protocol/contract/owner-inventory.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesHub, refuseRetired } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { withImage } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { isUniqueViolation, type Queries, type Tx } from '../../platform/store/database.ts'
import { jsonOf, JsonText } from '../../platform/store/json.ts'
import { statement } from '../../platform/store/statement.ts'
import { missingPart } from './layout.ts'
import { ownerProduct, type Product, productRows, readOwnerProduct } from './owner-product.ts'
import { discountedPriceSql } from './pricing.ts'
import { availableUnits } from './units.ts'
import { countStock } from './shelf-stock.ts'

/** O §4.2. */
export function inventoryHandlers(
  context: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<
  | 'owner.inventory.list'
  | 'owner.inventory.lookup'
  | 'owner.inventory.update_quantity'
  | 'owner.inventory.update_price'
  | 'owner.inventory.update_purchase_price'
  | 'owner.inventory.update_upc'
> {
  const q = context.db.kysely
  return {
    async 'owner.inventory.list'({ query }) {
      return new JsonText(await listInventory(q, query.hub_id))
    },
    async 'owner.inventory.lookup'({ query }) {
      const { hub_id: hubId, cabinet, shelf, row } = query
      const missing = await missingPart(q, hubId, { cabinet, shelf, row })
      if (missing)
        throw new ApiError('invalid_location', undefined, undefined, [
          {
            loc: ['query', missing],
            msg: `Value error, the hub has no such ${missing}`,
            type: 'value_error',
            input: query[missing],
          },
        ])
      const product = await productRows(q)
        .where('products.is_active', '=', 1)
        .innerJoin('facings', 'facings.product_id', 'products.id')
        .where('facings.hub_id', '=', hubId)
        .where('facings.cabinet', '=', cabinet)
        .where('facings.shelf', '=', shelf)
        .where('facings.row', '=', row)
        .executeTakeFirst()
      if (!product) throw new ApiError('product_not_found', 'Nothing has this place.')
      const { cabinet: _c, shelf: _s, row: _r, ...rest } = ownerProduct(product)
      return withImage(addressOf, rest)
    },
    'owner.inventory.update_quantity': async ({ params, body, credential }) => ({
      data: withImage(
        addressOf,
        await countProduct(context, { productId: params.product_id, credential }, body.quantity),
      ),
    }),
    'owner.inventory.update_price': async ({ params, body, credential }) => ({
      data: withImage(
        addressOf,
        await updateProduct(context, of(params, credential), {
          action: 'inventory.update_price',
          value: { original_price: body.price },
        }),
      ),
    }),
    'owner.inventory.update_purchase_price': async ({ params, body, credential }) => ({
      data: withImage(
        addressOf,
        await updateProduct(context, of(params, credential), {
          action: 'inventory.update_purchase_price',
          value: { purchase_price: body.purchase_price },
        }),
      ),
    }),
    async 'owner.inventory.update_upc'({ params, body, credential }) {
      const { id, upc } = await updateProduct(context, of(params, credential), {
        action: 'inventory.update_upc',
        value: { upc: body.upc },
      })
      return { success: true, data: { id, upc } }
    },
  }
}

const of = (params: { product_id: number }, credential: ProductRequest['credential']): ProductRequest => ({
  productId: params.product_id,
  credential,
})

interface ProductRequest {
  productId: number
  credential: OwnerCredential
}

/** The values that may be set directly; stock is counted instead. */
type NewValue = { original_price: number } | { purchase_price: number } | { upc: string }

/**
 * Sets one value of a product, with its audit record, in one transaction. Throws `duplicate_upc`, and
 * `product_not_found` also if the credential has no access to the product's hub.
 */
function updateProduct(
  context: CloudContext,
  request: ProductRequest,
  { action, value }: { action: string; value: NewValue },
): Promise<Product> {
  return context.db.transact(async (tx) => {
    const before = await lockProduct(tx, request)
    await set(tx, before.id, value)
    for (const [column, to] of Object.entries(value) as [keyof typeof before, number | string][])
      await audit(tx, context, request, before, { action, from: before[column] ?? '', to })
    return readOwnerProduct(tx.q, before.id)
  })
}

/** Records a count of a product's stock. It is shown at once, and the hub's ledger confirms it. */
function countProduct(context: CloudContext, request: ProductRequest, quantity: number): Promise<Product> {
  return context.db.transact(async (tx) => {
    const before = await lockProduct(tx, request)
    const facing = await tx.q
      .selectFrom('facings')
      .select('product_id')
      .where('product_id', '=', before.id)
      .executeTakeFirst()
    if (!facing) throw new ApiError('product_not_found', 'The product has no place at its hub.')
    const count = { hubId: before.hub_id, productId: before.id, location: null, quantity }
    const { count_id } = await countStock(tx, context, count)
    const change = { action: 'inventory.update_quantity', from: before.quantity, to: quantity, count_id }
    await audit(tx, context, request, before, change)
    return readOwnerProduct(tx.q, before.id)
  })
}

async function lockProduct(tx: Tx, { productId, credential }: ProductRequest) {
  const product = await tx
    .forUpdate(tx.q.selectFrom('products').selectAll().where('id', '=', productId).where('is_active', '=', 1))
    .executeTakeFirst()
  if (product) {
    const hub = await tx.q
      .selectFrom('hubs')
      .select(['id', 'owner_id', 'retired_at'])
      .where('id', '=', product.hub_id)
      .executeTakeFirstOrThrow()
    if (reachesHub(credential, hub)) {
      refuseRetired(hub)
      return product
    }
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

const inventoryOfHub = statement((q, { hubId }: { hubId: number }) => {
  const json = jsonOf(q)
  const ref = (name: string) => sql.ref(name)
  const product = json.object({
    id: ref('products.id'),
    name: ref('products.name'),
    upc: ref('products.upc'),
    quantity: sql`case when products.quantity > 0 then products.quantity else 0 end`,
    sellable_quantity: sql`(select case when units > 0 then units else 0 end from (select ${availableUnits} as units) as s)`,
    original_price: ref('products.original_price'),
    discounted_price: discountedPriceSql,
    purchase_price: ref('products.purchase_price'),
    cabinet: ref('products.cabinet'),
    shelf: ref('products.shelf'),
    row: ref('products.row'),
    category: ref('categories.name'),
  } satisfies Record<keyof InventoryProduct, unknown>)
  return q
    .selectFrom('products')
    .innerJoin('categories', 'categories.id', 'products.category_id')
    .where('products.is_active', '=', 1)
    .where('products.hub_id', '=', hubId)
    .select(json.text(json.arrayOf(product, ref('products.id'))).as('body'))
})

/** A hub's products in the form of `listedProduct`, by id, as JSON. */
async function listInventory(q: Queries, hubId: number): Promise<string> {
  const [row] = await inventoryOfHub(q, { hubId })
  return row!.body
}
