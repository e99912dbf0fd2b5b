import { type Selectable } from 'kysely'
import type { z } from 'zod'
import type { InventoryProduct, OwnerProduct } from '../../../protocol/contract/owner-inventory.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { discountedPrice } from './pricing.ts'
import { availableUnits } from './units.ts'

export type Product = z.infer<typeof OwnerProduct>
type ProductRow = Selectable<Tables['products']> & { category: string; available: number }

/** The products of hubs, with their category's name. */
export const productRows = (q: Queries) =>
  q
    .selectFrom('products')
    .innerJoin('categories', 'categories.id', 'products.category_id')
    .selectAll('products')
    .select('categories.name as category')
    .select(availableUnits.as('available'))

/** O §2, product, in the inventory list. `quantity` is the number of units on the shelf, reserved or not. */
const listedProduct = (row: ProductRow): InventoryProduct => ({
  id: row.id,
  name: row.name,
  upc: row.upc,
  quantity: Math.max(0, row.quantity),
  sellable_quantity: Math.max(0, row.available),
  original_price: row.original_price,
  discounted_price: discountedPrice(row.original_price, row.markdown_percent),
  purchase_price: row.purchase_price,
  cabinet: row.cabinet,
  shelf: row.shelf,
  row: row.row,
  category: row.category,
})

/** O §2, product, with every field. */
export const ownerProduct = (row: ProductRow): Product => ({
  ...listedProduct(row),
  image_url: row.image_url,
})

export const readOwnerProduct = async (q: Queries, productId: number): Promise<Product> =>
  ownerProduct(await productRows(q).where('products.id', '=', productId).executeTakeFirstOrThrow())
