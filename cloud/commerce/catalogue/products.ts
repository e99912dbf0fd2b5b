import { sql, type SelectQueryBuilder } from 'kysely'
import type { Product } from '../../../protocol/contract/consumer-products.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'
import { containsPattern } from '../../platform/store/like.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { statement } from '../../platform/store/statement.ts'
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
  const words = searchText(search.name ?? '')
    .split(' ')
    .filter((word) => word !== '')
  const { page, count } = statementsOf({
    byCategory: search.categoryId !== undefined,
    bySubcategory: search.subcategoryId !== undefined,
    words: words.length,
  })
  const offset = (search.page - 1) * search.size
  const values: SearchValues = { ...search, offset }
  for (const [index, word] of words.entries()) values[`word${index}`] = containsPattern(word)
  const rows = await page(q, values)
  const isLast = rows.length < search.size && (rows.length > 0 || offset === 0)
  const total = isLast ? offset + rows.length : (await count(q, values))[0]!.total
  if (total === 0) await requireHub(q, search.hubId)
  return { products: rows.map(toProduct), total }
}

/** What a search asks for, whatever the values are: searches of one shape are one statement. */
interface Shape {
  byCategory: boolean
  bySubcategory: boolean
  words: number
}

type SearchValues = Omit<ProductSearch, 'name' | 'page'> & { offset: number; [word: `word${number}`]: string }

/** More words than anybody types have statements that are made for them alone. */
const MAX_KEPT_WORDS = 8
const kept = new Map<string, ReturnType<typeof makeStatements>>()

function statementsOf(shape: Shape): ReturnType<typeof makeStatements> {
  if (shape.words > MAX_KEPT_WORDS) return makeStatements(shape)
  const name = JSON.stringify(shape)
  const known = kept.get(name) ?? makeStatements(shape)
  kept.set(name, known)
  return known
}

function makeStatements(shape: Shape) {
  function matching(q: Queries, values: SearchValues) {
    let query = activeProducts(q, values.hubId)
    if (shape.byCategory) query = query.where('products.category_id', '=', values.categoryId!)
    if (shape.bySubcategory) query = query.where('products.subcategory_id', '=', values.subcategoryId!)
    for (let index = 0; index < shape.words; index += 1)
      query = query.where(sql<boolean>`products.search_name like ${values[`word${index}`]} escape '!'`)
    return query
  }
  return {
    page: statement((q, values: SearchValues) => {
      // The page is cut out of the index before any row is looked at more closely.
      const page = matching(q, values)
        .select('products.id')
        .orderBy('products.search_name')
        .orderBy('products.id')
        .limit(values.size)
        .offset(values.offset)
      return withDetails(q.selectFrom('products').where('products.id', 'in', page))
        .orderBy('products.search_name')
        .orderBy('products.id')
    }),
    count: statement((q, values: SearchValues) =>
      matching(q, values).select((eb) => eb.fn.countAll<number>().as('total')),
    ),
  }
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
