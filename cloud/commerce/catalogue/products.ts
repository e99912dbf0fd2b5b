import { type SelectQueryBuilder, sql } from 'kysely'
import type { Product } from '../../../protocol/contract/consumer-products.ts'
import type { Routes } from '../../../protocol/contract/routes.ts'
import { searchText } from '../../../protocol/model/search-text.ts'
import { ApiError } from '../../platform/api-error.ts'
import { BoundedMap } from '../../platform/bounded-map.ts'
import type { CloudContext } from '../../platform/context.ts'
import { pathUnder, type PublicUrl } from '../../platform/public-url.ts'
import { type HandlerInput, type Handlers, reply } from '../../platform/http/handler.ts'
import { withImage } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries } from '../../platform/store/database.ts'
import { containsPattern, isLike } from '../../platform/store/like.ts'
import { offsetOf } from '../../platform/http/lists.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { statement } from '../../platform/store/statement.ts'
import { discountedPrice } from './pricing.ts'
import { availableUnits } from './units.ts'

type ListInput = HandlerInput<Routes['consumer.products.list']>

/** C §4.7. */
export function productHandlers(
  { db, settings }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
  publicUrl: PublicUrl,
): Handlers<'consumer.products.list' | 'consumer.products.get'> {
  const totals = new FoundTotals(settings.searchTotalsKept)
  return {
    async 'consumer.products.list'({ params, query, url }) {
      const search: ProductSearch = {
        hubId: params.hub_id,
        categoryId: query.category_id,
        subcategoryId: query.subcategory_id,
        name: query.product_name,
        page: query.page,
        size: query.size,
      }
      const { products, total } = await searchProducts(db.kysely, search, totals)
      const shown = products.map((product) => withImage(addressOf, product))
      const headers = { 'X-Total-Count': String(total), Link: pageLinks(publicUrl, url, query, total) }
      return reply(shown, { headers })
    },
    'consumer.products.get': async ({ params }) =>
      withImage(addressOf, await readProduct(db.kysely, params.hub_id, params.product_id)),
  }
}

/** The addresses of the first, previous, next and last page (RFC 8288). */
function pageLinks(
  publicUrl: PublicUrl,
  url: URL,
  { page, size }: ListInput['query'],
  total: number,
): string {
  const last = Math.max(1, Math.ceil(total / size))
  const pages: [string, number][] = [['first', 1]]
  if (page > 1) pages.push(['prev', Math.min(page - 1, last)])
  if (page < last) pages.push(['next', page + 1])
  pages.push(['last', last])
  const target = new URL(url)
  return pages
    .map(([rel, number]) => {
      target.searchParams.set('page', String(number))
      target.searchParams.set('size', String(size))
      return `<${pathUnder(publicUrl, `${target.pathname}${target.search}`)}>; rel="${rel}"`
    })
    .join(', ')
}

export interface ProductSearch {
  hubId: number
  categoryId?: number | undefined
  subcategoryId?: number | undefined
  /** Words that a name must contain, as a whole or in part, in any case and with or without accents. */
  name?: string | undefined
  page: number
  size: number
}

/**
 * The number of results of searches. Counting takes longer than reading one page, and the number stays the same until
 * the hub's catalogue changes. So each number is stored with the catalogue's version, which every process can compare.
 */
export class FoundTotals {
  readonly #known: BoundedMap<Found>

  constructor(most: number) {
    this.#known = new BoundedMap(most)
  }

  find(search: string, version: number): number | undefined {
    const known = this.#known.get(search)
    return known?.version === version ? known.total : undefined
  }

  keep(search: string, found: Found): void {
    this.#known.set(search, found)
  }
}

interface Found {
  total: number
  /** The version of the hub's catalogue. */
  version: number
}

/** A page of the active products of a hub, by name, and their total number (C §4.7). */
export async function searchProducts(
  q: Queries,
  search: ProductSearch,
  totals: FoundTotals,
): Promise<{ products: Product[]; total: number }> {
  const words = searchText(search.name ?? '')
    .split(' ')
    .filter((word) => word !== '')
  const { page, count } = statementsOf({
    byCategory: search.categoryId !== undefined,
    bySubcategory: search.subcategoryId !== undefined,
    words: words.length,
  })
  const offset = offsetOf(search.page, search.size)
  const values: SearchValues = { ...search, offset }
  for (const [index, word] of words.entries()) values[`word${index}`] = containsPattern(word)
  const rows = await page(q, values)
  const isLast = rows.length < search.size && (rows.length > 0 || offset === 0)
  const total = isLast ? offset + rows.length : await all(rows[0]?.catalogue_version)
  if (total === 0) await requireHub(q, search.hubId)
  return { products: rows.map(toProduct), total }

  async function all(version: number | undefined): Promise<number> {
    const asked = JSON.stringify([search.hubId, search.categoryId, search.subcategoryId, ...words])
    const known = version === undefined ? undefined : totals.find(asked, version)
    if (known !== undefined) return known
    const [found] = await count(q, values)
    // Both are read at one moment. An unknown hub has no version.
    if (found!.version !== null) totals.keep(asked, { total: found!.total, version: found!.version })
    return found!.total
  }
}

/** The structure of a search without its values: searches of one shape use one statement. */
interface Shape {
  byCategory: boolean
  bySubcategory: boolean
  words: number
}

type SearchValues = Omit<ProductSearch, 'name' | 'page'> & { offset: number; [word: `word${number}`]: string }

/** Searches with more words are rare; their statements are not stored. */
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
      query = query.where(isLike('products.search_name', values[`word${index}`]))
    return query
  }
  return {
    page: statement((q, values: SearchValues) => {
      // The index yields the page before other columns are read.
      const page = matching(q, values)
        .select('products.id')
        .orderBy('products.search_name')
        .orderBy('products.id')
        .limit(values.size)
        .offset(values.offset)
      return withDetails(q.selectFrom('products').where('products.id', 'in', page))
        .select(versionOf(values.hubId).as('catalogue_version'))
        .orderBy('products.search_name')
        .orderBy('products.id')
    }),
    count: statement((q, values: SearchValues) =>
      matching(q, values).select((eb) => [
        eb.fn.countAll<number>().as('total'),
        versionOf(values.hubId).as('version'),
      ]),
    ),
  }
}

/** The version of a hub's catalogue; null if there is no such hub. */
const versionOf = (hubId: number) => sql<number>`(select catalogue_version from hubs where id = ${hubId})`

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

/** A retired hub never sells again. */
const isSelling = sql<boolean>`exists (select 1 from hubs where hubs.id = products.hub_id and hubs.retired_at is null)`

/** The index of names is used only with exactly this condition. */
const isActive = sql<boolean>`products.is_active = 1`

const activeProducts = (q: Queries, hubId: number) =>
  q.selectFrom('products').where('products.hub_id', '=', hubId).where(isActive)

const withDetails = <O>(query: SelectQueryBuilder<Tables, 'products', O>) =>
  query
    .innerJoin('categories as category', 'category.id', 'products.category_id')
    .leftJoin('categories as subcategory', 'subcategory.id', 'products.subcategory_id')
    .select([
      'products.id',
      'products.name',
      'products.upc',
      'products.description',
      'products.category_id',
      'products.subcategory_id',
      'products.original_price',
      'products.markdown_percent',
      'products.cabinet',
      'products.shelf',
      'products.row',
      'products.image_url',
      'products.is_bestseller',
      'category.name as category',
      'subcategory.name as subcategory',
    ])
    .select(sql<number>`case when ${isSelling} then ${availableUnits} else 0 end`.as('available'))

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
