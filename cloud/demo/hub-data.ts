import { sql } from 'kysely'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { upcCheckDigit } from '../../protocol/model/upc.ts'
import { type Built, builtOf, writeLayout } from '../commerce/catalogue/layout.ts'
import { searchText } from '../../protocol/model/search-text.ts'
import type { ExternalPayments } from '../platform/store/tables/hubs.ts'
import { openHub } from '../operations/hubs/create-hub.ts'
import { digestOf } from '../platform/credentials/secrets.ts'
import type { Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import type { Tables } from '../platform/store/schema.ts'
import { type DemoProduct, demoProducts } from './assortment.ts'
import type { DemoChance } from './chance.ts'
import type { ProductPictures } from './pictures.ts'

/**
 * The hardware of the demo's hubs (`simulator/hardware/demo-hub.json`): it has room for every facing below.
 */
const ROOM = { cabinets: 4, shelves: 5, rows: 6, depth: 10 }

interface DemoHub {
  id: number
  ownerId: number
  name: string
  street: string
  city: string
  state: string
  postalCode: string
  longitude: number
  latitude: number
  timezone: string
  taxMillipercent: number
  /** Number of products of the assortment that it sells. */
  products: number
  /** Number of these products that have a second facing. */
  doubled: number
  /** Who may claim orders for external payment; nobody if absent. */
  externalPayments?: ExternalPayments
}

export const demoHubs: readonly DemoHub[] = [
  {
    id: 1,
    ownerId: 1,
    name: 'Central Station',
    street: '1 Station Square',
    city: 'Springfield',
    state: 'IL',
    postalCode: '62701',
    longitude: -89.6501,
    latitude: 39.7817,
    timezone: 'America/Chicago',
    taxMillipercent: 8250,
    products: demoProducts.length,
    doubled: 8,
    externalPayments: 'everyone',
  },
  {
    id: 2,
    ownerId: 1,
    name: 'University Library',
    street: '200 College Avenue',
    city: 'Springfield',
    state: 'IL',
    postalCode: '62703',
    longitude: -89.6337,
    latitude: 39.7635,
    timezone: 'America/Chicago',
    taxMillipercent: 8250,
    products: 20,
    doubled: 0,
  },
  {
    id: 3,
    ownerId: 2,
    name: 'Harbour Hotel',
    street: '8 Quay Street',
    city: 'Portland',
    state: 'ME',
    postalCode: '04101',
    longitude: -70.2553,
    latitude: 43.6591,
    timezone: 'America/New_York',
    taxMillipercent: 5500,
    products: 40,
    doubled: 4,
  },
]

export interface SeededProduct extends DemoProduct {
  id: number
  upc: string
  image: string
}
export interface SeededFacing {
  cabinet: number
  shelf: number
  row: number
  product_id: number
  units: number
}
export interface SeededHub {
  hub: DemoHub
  mqttPassword: string
  products: SeededProduct[]
  facings: SeededFacing[]
}

/** Inserts a hub with its products, its planogram, and its shelves as they were counted. */
export async function insertHub(
  tx: Tx,
  runtime: Runtime,
  hub: DemoHub,
  options: { firstProductId: number; mqttPassword: string; chance: DemoChance; pictures: ProductPictures },
): Promise<SeededHub> {
  const products = demoProducts.slice(0, hub.products).map((product, index) => ({
    ...product,
    id: options.firstProductId + index,
    upc: upcOf(index),
    image: options.pictures.imageOf(product),
  }))
  const facings = arrange(products, hub.doubled, options.chance)
  const seeded = { hub, mqttPassword: options.mqttPassword, products, facings }
  await insertHubRow(tx, seeded, runtime.clock.now())
  await insertProducts(tx, seeded, options.chance)
  await insertFacings(tx, seeded, runtime)
  return seeded
}

async function insertHubRow(tx: Tx, { hub, mqttPassword }: SeededHub, now: number): Promise<void> {
  await insertMany(tx, 'hubs', [
    {
      id: hub.id,
      owner_id: hub.ownerId,
      name: hub.name,
      street_address_1: hub.street,
      street_address_2: null,
      city: hub.city,
      state: hub.state,
      postal_code: hub.postalCode,
      longitude: hub.longitude,
      latitude: hub.latitude,
      timezone: hub.timezone,
      ...openHub,
      external_payments: hub.externalPayments ?? 'off',
      mqtt_password_digest: digestOf(mqttPassword),
      tax_millipercent: hub.taxMillipercent,
      created_at: now,
    },
  ])
}

async function insertProducts(
  tx: Tx,
  { hub, products, facings }: SeededHub,
  chance: DemoChance,
): Promise<void> {
  const categories = await categoryIds(tx)
  await insertMany(
    tx,
    'products',
    products.map((product) => {
      const own = facings.filter((facing) => facing.product_id === product.id)
      const { cabinet, shelf, row } = own[0]!
      return {
        id: product.id,
        hub_id: hub.id,
        name: product.name,
        search_name: searchText(product.name),
        upc: product.upc,
        description: `${product.name}, from the ${product.subcategory.toLowerCase()} shelf.`,
        category_id: categories.get(product.category)!,
        subcategory_id: categories.get(product.subcategory)!,
        original_price: product.price,
        markdown_percent: product.markdown,
        purchase_price: product.cost,
        image_url: product.image,
        is_bestseller: chance.fraction() < 0.15 ? 1 : 0,
        is_active: 1,
        cabinet,
        shelf,
        row,
        quantity: own.reduce((sum, { units }) => sum + units, 0),
        reserved: 0,
      }
    }),
  )
}

async function insertFacings(tx: Tx, { hub, facings }: SeededHub, runtime: Runtime): Promise<void> {
  const now = runtime.clock.now()
  await insertMany(
    tx,
    'facings',
    facings.map(({ units, ...place }, index) => ({
      hub_id: hub.id,
      ...place,
      is_primary: facings.findIndex(({ product_id }) => product_id === place.product_id) === index ? 1 : 0,
      quantity: units,
    })),
  )
  await insertMany(
    tx,
    'stock_ledger',
    facings.map(({ units, ...place }) => ({
      hub_id: hub.id,
      ...place,
      kind: 'counted',
      delta: units,
      cause_id: uuidv7(runtime),
      order_id: null,
      item_id: null,
      at: now,
    })),
  )
}

/**
 * A number that no real article has (GS1 reserves the prefix 2 for use inside a shop), with its check digit.
 */
function upcOf(index: number): string {
  const digits = `2${String(40_000 + index * 7).padStart(10, '0')}`
  return `${digits}${upcCheckDigit(digits)}`
}

/** Places one facing per product, cabinet by cabinet, then the second facings in the remaining room. */
function arrange(products: readonly SeededProduct[], doubled: number, chance: DemoChance): SeededFacing[] {
  const places: Omit<SeededFacing, 'product_id' | 'units'>[] = []
  for (let cabinet = 1; cabinet <= ROOM.cabinets; cabinet += 1)
    for (let shelf = 1; shelf <= ROOM.shelves; shelf += 1)
      for (let row = 1; row <= ROOM.rows; row += 1) places.push({ cabinet, shelf, row })
  return [...products, ...products.slice(0, doubled)].map((product, index) => ({
    ...places[index]!,
    product_id: product.id,
    units: chance.between(6, ROOM.depth),
  }))
}

async function categoryIds(tx: Tx): Promise<Map<string, number>> {
  const rows = await tx.q.selectFrom('categories').select(['id', 'name']).execute()
  return new Map(rows.map(({ id, name }) => [name, id]))
}

/**
 * Writes a hub's layout: from its hardware description, or with the shelves and rows that the demo's
 * planogram needs.
 */
export const insertLayout = (
  tx: Tx,
  hubId: number,
  hardware: Pick<HardwareDescription, 'controllers' | 'fridgeDoors'> | undefined,
): Promise<void> => writeLayout(tx, hubId, hardware ? builtOf(hardware) : plain)

const plain: Built = {
  shelves: Array.from({ length: ROOM.cabinets * ROOM.shelves }, (_, index) => ({
    cabinet: 1 + Math.floor(index / ROOM.shelves),
    shelf: 1 + (index % ROOM.shelves),
    total_rows: ROOM.rows,
    depth: ROOM.depth,
  })),
  fridges: [{ fridge: 1, left: 1, middle: 2, right: 3 }],
  bins: [1, 2, 3, 4].map((bin) => ({ bin, capacity: 10 })),
}

const CHUNK = 5000

/** Inserts many rows, ids included, with few statements. All rows have the columns of the first. */
export async function insertMany(
  tx: Tx,
  table: keyof Tables,
  rows: readonly Record<string, string | number | null>[],
): Promise<void> {
  const first = rows[0]
  if (!first) return
  const names = Object.keys(first)
  const columns = Object.fromEntries(names.map((name) => [name, typeOf(rows, name)]))
  const list = sql.join(names.map((name) => sql.ref(name)))
  for (let from = 0; from < rows.length; from += CHUNK) {
    const source = recordset(tx.kind, columns, rows.slice(from, from + CHUNK))
    await sql`insert into ${sql.table(table)} (${list}) select ${list} from ${source}`.execute(tx.q)
  }
  // SQLite continues from the greatest id automatically.
  if (tx.kind === 'postgres' && typeof first['id'] === 'number')
    await sql`select setval(pg_get_serial_sequence(${table}, 'id'), (select max(id) from ${sql.table(table)}))`.execute(
      tx.q,
    )
}

function typeOf(
  rows: readonly Record<string, string | number | null>[],
  name: string,
): 'int' | 'real' | 'text' {
  if (rows.some((row) => typeof row[name] === 'string')) return 'text'
  return rows.every((row) => row[name] === null || Number.isInteger(row[name])) ? 'int' : 'real'
}
