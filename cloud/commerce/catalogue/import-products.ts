import type { Selectable } from 'kysely'
import { z } from 'zod'
import { Location, locationKey } from '../../../protocol/model/location.ts'
import { nameText } from '../../../protocol/model/name-text.ts'
import { UpcText } from '../../../protocol/model/upc.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { namedProducts } from './layout.ts'
import { searchText } from '../../../protocol/model/search-text.ts'
import { countStock, sumProducts, lockFacings, settleMovedCounts } from './shelf-stock.ts'

const Cents = z.int().max(100_000_000)
const Name = nameText(200)

const ProductEntry = z
  .strictObject({
    upc: UpcText,
    name: Name,
    description: z.string().max(2000).nullable().default(null),
    category: Name,
    subcategory: Name.nullable().default(null),
    /** Cents. */
    price: Cents.min(1),
    purchase_price: Cents.min(0),
    /** The product's own markdown in percent. */
    markdown_percent: z.int().min(0).max(99).default(0),
    /** The address of its image on another server. */
    image_url: z
      .union([z.literal(''), z.httpUrl().max(500).startsWith('https://')], 'must be an https:// address')
      .default(''),
    is_active: z.boolean().default(true),
    /** Its rows; the first is the primary one. */
    facings: z.array(Location).max(40).default([]),
    /** The counted stock of all its rows; if absent, the stock is unchanged. */
    quantity: z.int().min(0).max(1_000_000).optional(),
  })
  .superRefine(({ is_active, facings, quantity }, ctx) => {
    if (is_active && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['facings'], message: 'an active product stands somewhere' })
    if (quantity !== undefined && facings.length === 0)
      ctx.addIssue({ code: 'custom', path: ['quantity'], message: 'what stands nowhere is not counted' })
  })
type ProductEntry = z.infer<typeof ProductEntry>

/** A hub's products and planogram in an operator's file; UPCs identify the products. */
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

/** Products in one transaction: few enough that the service's own writes hardly wait. */
const BATCH = 100

/**
 * Imports a hub's products, prices and planogram, and sends the changes to the hub. Products that are not in the file
 * stay unchanged. Quantities are imported as counts. The import uses small transactions, because the service runs at
 * the same time: first products, then all rows at once, then counts. If it is interrupted, importing the same file
 * completes it.
 */
export async function importProducts(
  context: CloudContext,
  hubId: number,
  entries: readonly ProductEntry[],
  actor: string,
  onProgress: (done: number) => void = () => {},
): Promise<Imported> {
  const { db, runtime } = context
  // Before the first write, so that the audit log contains interrupted imports too.
  await db.transact(async (tx) => {
    await requirePlaces(tx, hubId, entries)
    await recordImport(tx, context, { hubId, entries, actor })
  })
  const ids = new Map<ProductEntry, number>()
  let updated = 0
  for (const batch of batchesOf(entries)) {
    const written = await db.transact((tx) => writeBatch(tx, batch))
    for (const { entry, id, isKnown } of written) {
      ids.set(entry, id)
      if (isKnown) updated += 1
    }
    onProgress(ids.size)
  }
  const facings = await db.transact((tx) => sendPlanogram(tx, context, hubId, ids))
  const counts = [...ids].flatMap(([{ quantity }, productId]) =>
    quantity === undefined ? [] : [{ hubId, productId, location: null, quantity }],
  )
  for (const batch of batchesOf(counts))
    await db.transact(async (tx) => {
      for (const count of batch) await countStock(tx, context, count)
    })
  return { created: ids.size - updated, updated, facings: facings.length, counted: counts.length }

  async function writeBatch(tx: Tx, batch: readonly ProductEntry[]) {
    // First, in the order of a checkout, which locks its hub and then products.
    await tx.q
      .updateTable('hubs')
      .set({ catalogue_version: Math.floor(runtime.random.fraction() * 2 ** 48) })
      .where('id', '=', hubId)
      .execute()
    const known = await knownProducts(
      tx,
      hubId,
      batch.map(({ upc }) => upc),
    )
    const written: { entry: ProductEntry; id: number; isKnown: boolean }[] = []
    for (const entry of batch) {
      const product = known.get(entry.upc)
      written.push({
        entry,
        id: await writeProduct(tx, hubId, entry, product),
        isKnown: product !== undefined,
      })
    }
    return written
  }
}

/** One audit record for the whole file, with its new prices and its counts. */
async function recordImport(
  tx: Tx,
  { runtime }: CloudContext,
  { hubId, entries, actor }: { hubId: number; entries: readonly ProductEntry[]; actor: string },
): Promise<void> {
  const known = await knownProducts(
    tx,
    hubId,
    entries.map(({ upc }) => upc),
  )
  const prices = entries.flatMap(({ upc, price, purchase_price }) => {
    const from = pricesOf(known.get(upc))
    const to = { original_price: price, purchase_price }
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ upc, ...(from && { from }), to }]
  })
  const counts = entries.flatMap(({ upc, quantity }) => (quantity === undefined ? [] : [{ upc, quantity }]))
  await appendAudit(tx.q, runtime, {
    actor,
    action: 'products.import',
    hubId,
    object: `hub-${hubId}`,
    result: 'executed',
    detail: { products: entries.length, prices, counts },
  })
}

function batchesOf<T>(items: readonly T[]): T[][] {
  return Array.from({ length: Math.ceil(items.length / BATCH) }, (_, index) =>
    items.slice(index * BATCH, (index + 1) * BATCH),
  )
}

/** Assigns the rows as in the file, and sends the planogram to the hub. */
async function sendPlanogram(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  ids: ReadonlyMap<ProductEntry, number>,
): Promise<Facing[]> {
  const facings = await arrange(tx, hubId, ids)
  await settleMovedCounts(tx, hubId, context.runtime.clock.now())
  await enqueue(tx, hubId, {
    kind: 'planogram',
    facings: facings.map(({ product_id, cabinet, shelf, row, is_primary }) => ({
      product_id,
      location: { cabinet, shelf, row },
      primary: is_primary === 1,
    })),
    products: await namedProducts(tx.q, hubId),
  })
  await sumProducts(tx, context, [...ids.values()])
  return facings
}

type Product = Selectable<Tables['products']>

const pricesOf = (product: Product | undefined) =>
  product && { original_price: product.original_price, purchase_price: product.purchase_price }

async function knownProducts(tx: Tx, hubId: number, upcs: readonly string[]): Promise<Map<string, Product>> {
  const known = tx.q.selectFrom('products').selectAll().where('hub_id', '=', hubId).where('upc', 'in', upcs)
  const rows = await tx.forUpdate(known.orderBy('id')).execute()
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
  const held = await tx.q
    .selectFrom('facings as f')
    .innerJoin('products as p', 'p.id', 'f.product_id')
    .select(['f.cabinet', 'f.shelf', 'f.row', 'f.product_id', 'p.upc'])
    .where('f.hub_id', '=', hubId)
    .execute()
  const named = new Set(entries.map(({ upc }) => upc))
  const wanted = new Set(entries.flatMap(({ facings }) => facings.map(locationKey)))
  for (const place of held)
    if (!named.has(place.upc) && wanted.has(locationKey(place))) throw takenByAnother(place, place.product_id)
}

const takenByAnother = (place: Location, productId: number): UsageError =>
  new UsageError(`${locationKey(place)} holds product ${productId}, which the file does not name`)

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

/** Assigns the rows as in the file. A row that keeps its product keeps its stock. Returns the planogram. */
async function arrange(tx: Tx, hubId: number, ids: ReadonlyMap<ProductEntry, number>): Promise<Facing[]> {
  const before = await lockFacings(tx, hubId)
  const named = new Set(ids.values())
  const stays = before.filter(({ product_id }) => !named.has(product_id))
  const held = new Map(before.map((facing) => [locationKey(facing), facing]))
  const placed = [...ids].flatMap(([entry, productId]) =>
    entry.facings.map((place, index): Facing => {
      const there = held.get(locationKey(place))
      if (there && !named.has(there.product_id)) throw takenByAnother(place, there.product_id)
      return {
        hub_id: hubId,
        ...place,
        product_id: productId,
        is_primary: index === 0 ? 1 : 0,
        quantity: there?.product_id === productId ? there.quantity : 0,
        counted_at: there?.product_id === productId ? there.counted_at : null,
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
