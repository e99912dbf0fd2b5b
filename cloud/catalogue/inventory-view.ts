import type { z } from 'zod'
import type { Selectable } from 'kysely'
import type { InventoryProduct, OwnerProduct } from '../../protocol/contract/owner-inventory.ts'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import { discountedPrice } from './price.ts'

type ProductRow = Selectable<Tables['products']> & { category: string }

/** The active products of hubs, with their category's name. */
export const inventoryRows = (q: Queries) =>
  q
    .selectFrom('products')
    .innerJoin('categories', 'categories.id', 'products.category_id')
    .where('products.is_active', '=', 1)
    .selectAll('products')
    .select('categories.name as category')

/** O §2, product, as the inventory lists it. The stock is what is on the shelf, promised or not. */
export const listedProduct = (row: ProductRow): InventoryProduct => ({
  id: row.id,
  name: row.name,
  upc: row.upc,
  quantity: Math.max(0, row.quantity),
  original_price: row.original_price,
  discounted_price: discountedPrice(row.original_price, row.markdown_percent),
  purchase_price: row.purchase_price,
  cabinet: row.cabinet,
  shelf: row.shelf,
  row: row.row,
  category: row.category,
})

/** O §2, product, with every field. */
export const ownerProduct = (row: ProductRow): z.infer<typeof OwnerProduct> => ({
  ...listedProduct(row),
  image_url: row.image_url,
})
