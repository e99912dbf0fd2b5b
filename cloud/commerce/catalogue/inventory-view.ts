import { sql, type Selectable } from 'kysely'
import type { z } from 'zod'
import type { InventoryProduct, OwnerProduct } from '../../../protocol/contract/owner-inventory.ts'
import type { Queries } from '../../platform/store/database.ts'
import { jsonOf } from '../../platform/store/json.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { statement } from '../../platform/store/statement.ts'
import { discountedPrice, discountedPriceSql } from './price.ts'

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

const inventoryOfHub = statement((q, { hubId }: { hubId: number }) => {
  const json = jsonOf(q)
  const ref = (name: string) => sql.ref(name)
  const product = json.object({
    id: ref('products.id'),
    name: ref('products.name'),
    upc: ref('products.upc'),
    quantity: sql`case when products.quantity > 0 then products.quantity else 0 end`,
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

/** All that `listedProduct` says of a hub's products, by id, as JSON. */
export async function listInventory(q: Queries, hubId: number): Promise<string> {
  const [row] = await inventoryOfHub(q, { hubId })
  return row!.body
}

/** O §2, product, with every field. */
export const ownerProduct = (row: ProductRow): z.infer<typeof OwnerProduct> => ({
  ...listedProduct(row),
  image_url: row.image_url,
})
