import type { CloudContext } from '../context.ts'
import type { Handlers } from '../http/handler.ts'
import { discountedPrice } from './price.ts'

/** O §4.2. The stock is what the hub's ledger last said, promised or not. */
export const inventoryHandlers = ({ db }: CloudContext): Handlers<'owner.inventory.list'> => ({
  'owner.inventory.list': async ({ query }) => {
    const rows = await db.kysely
      .selectFrom('products')
      .innerJoin('categories', 'categories.id', 'products.category_id')
      .where('products.hub_id', '=', query.hub_id)
      .where('products.is_active', '=', 1)
      .orderBy('products.id')
      .selectAll('products')
      .select('categories.name as category')
      .execute()
    return rows.map((row) => ({
      id: row.id,
      name: row.name,
      upc: row.upc,
      quantity: row.quantity,
      original_price: row.original_price,
      discounted_price: discountedPrice(row.original_price, row.markdown_percent),
      purchase_price: row.purchase_price,
      cabinet: row.cabinet,
      shelf: row.shelf,
      row: row.row,
      category: row.category,
    }))
  },
})
