import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import { type Handlers } from '../../platform/http/handler.ts'
import { JsonText } from '../../platform/store/json.ts'
import { hasPlace } from './layout.ts'
import { withImage } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import { inventoryRows, listInventory, ownerProduct } from './inventory-view.ts'
import { countProduct, updateProduct, type ProductRequest } from './update-product.ts'

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
      if (!(await hasPlace(q, hubId, { cabinet, shelf, row }))) throw new ApiError('invalid_location')
      const product = await inventoryRows(q)
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
