import { sql, type SelectQueryBuilder } from 'kysely'
import type { Product } from '../../protocol/contract/consumer-products.ts'
import { ApiError } from '../http/api-error.ts'
import type { Queries } from '../store/database.ts'
import { containsPattern } from '../store/like.ts'
import type { Tables } from '../store/schema.ts'
import { availableUnits } from './availability.ts'
import { discountedPrice } from './price.ts'
import { searchText } from './search-text.ts'

export interface ProductSearch {
  hubId: number
  categoryId?: number | undefined
  subcategoryId?: number | undefined
  /** Words that a name must contain, each in whole or in part, in any case and with or without accents. */
  name?: string | undefined
  page: number
  size: number
}

/** A page of the active products of a hub, by name, and how many there are in all (C §4.7). */
export async function searchProducts(
  q: Queries,
  search: ProductSearch,
): Promise<{ products: Product[]; total: number }> {
  let matching = activeProducts(q, search.hubId)
  if (search.categoryId !== undefined)
    matching = matching.where('products.category_id', '=', search.categoryId)
  if (search.subcategoryId !== undefined)
    matching = matching.where('products.subcategory_id', '=', search.subcategoryId)
  for (const word of searchText(search.name ?? '').split(' '))
    if (word !== '')
      matching = matching.where(sql<boolean>`products.search_name like ${containsPattern(word)} escape '!'`)
  const offset = (search.page - 1) * search.size
  // The page is cut out of the index before any row is looked at more closely.
  const page = matching
    .select('products.id')
    .orderBy('products.search_name')
    .orderBy('products.id')
    .limit(search.size)
    .offset(offset)
  const rows = await withDetails(q.selectFrom('products').where('products.id', 'in', page))
    .orderBy('products.search_name')
    .orderBy('products.id')
    .execute()
  const isLast = rows.length < search.size && (rows.length > 0 || offset === 0)
  const total = isLast ? offset + rows.length : await count(matching)
  if (total === 0) await requireHub(q, search.hubId)
  return { products: rows.map(toProduct), total }
}

async function count(matching: SelectQueryBuilder<Tables, 'products', object>): Promise<number> {
  const { total } = await matching
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow()
  return total
}

/** One product of a hub, or `product_not_found`. */
export async function readProduct(q: Queries, hubId: number, productId: number): Promise<Product> {
  await requireHub(q, hubId)
  const row = await withDetails(activeProducts(q, hubId))
    .where('products.id', '=', productId)
    .executeTakeFirst()
  if (!row) throw new ApiError('product_not_found')
  return toProduct(row)
}

async function requireHub(q: Queries, hubId: number): Promise<void> {
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
}

/** As the index of names has it: in these words only it is used. */
const isActive = sql<boolean>`products.is_active = 1`

const activeProducts = (q: Queries, hubId: number) =>
  q.selectFrom('products').where('products.hub_id', '=', hubId).where(isActive)

const withDetails = <O>(query: SelectQueryBuilder<Tables, 'products', O>) =>
  query
    .innerJoin('categories as category', 'category.id', 'products.category_id')
    .leftJoin('categories as subcategory', 'subcategory.id', 'products.subcategory_id')
    .selectAll('products')
    .select(['category.name as category', 'subcategory.name as subcategory'])
    .select(availableUnits.as('available'))

type ProductRow = Awaited<ReturnType<ReturnType<typeof withDetails<object>>['executeTakeFirstOrThrow']>>

function toProduct(row: ProductRow): Product {
  const quantity = Math.max(0, row.available)
  return {
    id: row.id,
    name: row.name,
    upc: row.upc,
    description: row.description,
    category_id: row.category_id,
    category: row.category,
    subcategory_id: row.subcategory_id,
    subcategory: row.subcategory,
    original_price: row.original_price,
    discounted_price: discountedPrice(row.original_price, row.markdown_percent),
    quantity,
    in_stock: quantity > 0,
    cabinet: row.cabinet,
    shelf: row.shelf,
    row: row.row,
    image_url: row.image_url,
    is_bestseller: row.is_bestseller === 1,
  }
}
