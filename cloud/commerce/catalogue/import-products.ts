import type { Selectable } from 'kysely'
import { z } from 'zod'
import { Location, locationKey } from '../../../protocol/model/location.ts'
import { isUpc } from '../../../protocol/model/upc.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { appendAudits } from '../../platform/audit/audit.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { searchText } from './products.ts'
import { countStock, sumProducts, lockFacings } from './shelf-stock.ts'

const Cents = z.int().min(0).max(100_000_000)
const Name = z.string().trim().min(1).max(200)

const ProductEntry = z
  .strictObject({
    upc: z.string().refine(isUpc, 'must be 12 digits, of which the last checks the others'),
    name: Name,
    description: z.string().max(2000).nullable().default(null),
    category: Name,
    subcategory: Name.nullable().default(null),
    /** Cents. */
    price: Cents,
    purchase_price: Cents,
    /** The product's own markdown in percent. */
    markdown_percent: z.int().min(0).max(99).default(0),
    /** Where its image is: elsewhere. */
    image_url: z
      .union([z.literal(''), z.httpUrl().max(500).startsWith('https://')], 'must be an https:// address')
      .default(''),
    is_active: z.boolean().default(true),
    /** Where it stands; the first place is its primary one. */
    facings: z.array(Location).max(40).default([]),
    /** What was counted there, all places together; left out, the stock stays what it is. */
    quantity: z.int().min(0).max(1_000_000).optional(),
  })
  .superRefine(({ is_active, facings, quantity }, ctx) => {
    if (is_active && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['facings'], message: 'an active product stands somewhere' })
    if (quantity !== undefined && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['quantity'], message: 'what stands nowhere is not counted' })
  })
type ProductEntry = z.infer<typeof ProductEntry>

/** What a hub sells and where it stands, as an operator writes it: a product is known by its UPC. */
export const ProductFile = z
  .array(ProductEntry)
  .min(1)
  .max(5000)
  .superRefine((products, ctx) => {
    const upcs = new Set<string>()
    const places = new Map<string, string>()
    for (const [index, { upc, facings }] of products.entries()) {
      if (upcs.has(upc)) ctx.addIssue({ code: 'custom', path: [index], message: `UPC ${upc} is there twice` })
      upcs.add(upc)
      for (const facing of facings) {
        const key = locationKey(facing)
        const other = places.get(key)
        if (other !== undefined)
          ctx.addIssue({
            code: 'custom',
            path: [index],
            message: `${key} is taken by ${other} and by ${upc}`,
          })
        places.set(key, upc)
      }
    }
  })

interface Imported {
  created: number
  updated: number
  facings: number
  counted: number
}

type Facing = Selectable<Tables['facings']>

/**
 * Makes a hub's products and planogram what a file says, and sends the hub what concerns it. Products that the file does not
 * name stay as they are; stock is counted, never written.
 */
export async function importProducts(
  tx: Tx,
  runtime: Runtime,
  hubId: number,
  entries: readonly ProductEntry[],
  actor: string,
  onProgress: (done: number) => void = () => {},
): Promise<Imported> {
  await requirePlaces(tx, hubId, entries)
  const ids = new Map<ProductEntry, number>()
  const known = await knownProducts(tx, hubId)
  let updated = 0
  for (const entry of entries) {
    const product = known.get(entry.upc)
    if (product) updated += 1
    ids.set(entry, await writeProduct(tx, hubId, entry, product))
    onProgress(ids.size)
  }
  const facings = await arrange(tx, hubId, ids)
  await enqueue(tx, hubId, {
    kind: 'planogram',
    facings: facings.map(({ product_id, cabinet, shelf, row, is_primary }) => ({
      product_id,
      location: { cabinet, shelf, row },
      primary: is_primary === 1,
    })),
  })
  await sumProducts(tx, [...ids.values()])
  let counted = 0
  for (const [{ quantity }, productId] of ids)
    if (quantity !== undefined) {
      await countStock(tx, runtime, { hubId, productId, quantity })
      counted += 1
    }
  await appendAudits(
    tx.q,
    runtime,
    [...ids].map(([entry, id]) => ({
      actor,
      action: 'products.import',
      hubId,
      object: `product-${id}`,
      result: 'executed',
      detail: {
        upc: entry.upc,
        from: pricesOf(known.get(entry.upc)),
        to: { original_price: entry.price, purchase_price: entry.purchase_price },
        ...(entry.quantity !== undefined && { quantity: entry.quantity }),
      },
    })),
  )
  return { created: ids.size - updated, updated, facings: facings.length, counted }
}

type Product = Selectable<Tables['products']>

const pricesOf = (product: Product | undefined) =>
  product && { original_price: product.original_price, purchase_price: product.purchase_price }

async function knownProducts(tx: Tx, hubId: number): Promise<Map<string, Product>> {
  const rows = await tx
    .forUpdate(tx.q.selectFrom('products').selectAll().where('hub_id', '=', hubId).orderBy('id'))
    .execute()
  return new Map(rows.map((row) => [row.upc, row]))
}

async function requirePlaces(tx: Tx, hubId: number, entries: readonly ProductEntry[]): Promise<void> {
  const shelves = await tx.q
    .selectFrom('hub_shelves')
    .select(['cabinet', 'shelf', 'total_rows'])
    .where('hub_id', '=', hubId)
    .execute()
  const rows = new Map(shelves.map(({ cabinet, shelf, total_rows }) => [`${cabinet}/${shelf}`, total_rows]))
  const missing = entries
    .flatMap(({ facings }) => facings)
    .filter(({ cabinet, shelf, row }) => row > (rows.get(`${cabinet}/${shelf}`) ?? 0))
  if (missing.length > 0)
    throw new UsageError(`hub ${hubId} has no such place: ${missing.map(locationKey).join(', ')}`)
}

async function writeProduct(
  tx: Tx,
  hubId: number,
  entry: ProductEntry,
  known: Product | undefined,
): Promise<number> {
  const categoryId = await categoryOf(tx, entry.category, null)
  const columns = {
    name: entry.name,
    search_name: searchText(entry.name),
    description: entry.description,
    category_id: categoryId,
    subcategory_id: entry.subcategory === null ? null : await categoryOf(tx, entry.subcategory, categoryId),
    original_price: entry.price,
    markdown_percent: entry.markdown_percent,
    purchase_price: entry.purchase_price,
    image_url: entry.image_url,
    is_active: entry.is_active ? (1 as const) : (0 as const),
    ...entry.facings[0],
  }
  if (known) {
    await tx.q.updateTable('products').set(columns).where('id', '=', known.id).execute()
    return known.id
  }
  const { id } = await tx.q
    .insertInto('products')
    .values({
      cabinet: 1,
      shelf: 1,
      row: 1,
      ...columns,
      hub_id: hubId,
      upc: entry.upc,
      is_bestseller: 0,
      quantity: 0,
      reserved: 0,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

async function categoryOf(tx: Tx, name: string, parentId: number | null): Promise<number> {
  const known = await tx.q
    .selectFrom('categories')
    .select('id')
    .where('name', '=', name)
    .where('parent_id', parentId === null ? 'is' : '=', parentId)
    .executeTakeFirst()
  if (known) return known.id
  const { id } = await tx.q
    .insertInto('categories')
    .values({ name, parent_id: parentId })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/** Puts the products where the file has them. A place that keeps its product keeps what is in it. Returns the planogram. */
async function arrange(tx: Tx, hubId: number, ids: ReadonlyMap<ProductEntry, number>): Promise<Facing[]> {
  const before = await lockFacings(tx, hubId)
  const named = new Set(ids.values())
  const stays = before.filter(({ product_id }) => !named.has(product_id))
  const held = new Map(before.map((facing) => [locationKey(facing), facing]))
  const placed = [...ids].flatMap(([entry, productId]) =>
    entry.facings.map((place, index): Facing => {
      const there = held.get(locationKey(place))
      if (there && !named.has(there.product_id))
        throw new UsageError(
          `${locationKey(place)} holds product ${there.product_id}, which the file does not name`,
        )
      return {
        hub_id: hubId,
        ...place,
        product_id: productId,
        is_primary: index === 0 ? 1 : 0,
        quantity: there?.product_id === productId ? there.quantity : 0,
      }
    }),
  )
  if (named.size > 0)
    await tx.q
      .deleteFrom('facings')
      .where('hub_id', '=', hubId)
      .where('product_id', 'in', [...named])
      .execute()
  for (const facing of placed) await tx.q.insertInto('facings').values(facing).execute()
  return [...stays, ...placed]
}
