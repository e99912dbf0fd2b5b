import type { z } from 'zod'
import type { CartItems } from '../../../protocol/contract/deal-objects.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { CartAtHub } from './offer.ts'

/** A cart as an integrator sends it. */
export interface SentCart {
  hub_id: number
  user_id: number | null
  device_uuid: string | null
  cart_items: z.output<typeof CartItems>
}

/** The same with the categories that were not sent, as the hub's products have them, and its lines for the engine. */
export async function readCart(
  q: Queries,
  hub: { id: number; timezone: string },
  { cart_items: items, user_id, device_uuid }: SentCart,
) {
  const unknown = items.filter(({ category_id }) => category_id === null).map((item) => item.product_id)
  const products =
    unknown.length === 0
      ? []
      : await q
          .selectFrom('products')
          .select(['id', 'category_id', 'subcategory_id'])
          .where('hub_id', '=', hub.id)
          .where('id', 'in', unknown)
          .execute()
  const byId = new Map(products.map((product) => [product.id, product]))
  const completed = items.map((item) => ({
    ...item,
    category_id: item.category_id ?? byId.get(item.product_id)?.category_id ?? null,
    subcategory_id: item.subcategory_id ?? byId.get(item.product_id)?.subcategory_id ?? null,
  }))
  const at: CartAtHub = {
    hub,
    shopper: { userId: user_id, deviceUuid: device_uuid, takesUp: false },
    lines: completed.map((item) => ({
      productId: item.product_id,
      categoryIds: [item.category_id, item.subcategory_id].filter((id) => id !== null),
      quantity: item.quantity,
      unitPrice: item.unit_price,
    })),
  }
  return { items: completed, at }
}
export type ReadCart = Awaited<ReturnType<typeof readCart>>
