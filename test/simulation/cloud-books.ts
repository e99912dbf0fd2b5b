import { hubRow } from '../world/seeds.ts'
import { insertLayout } from '../../cloud/demo/hub-data.ts'
import { openDatabase, type CloudDatabase, type Queries } from '../../cloud/platform/store/database.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { insertDeals } from './deals.ts'
import { facingsOf, hardwareOf, productOf, PRODUCTS } from './hardware.ts'
import { EPOCH } from './scheduler.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'

export const CUSTOMERS = 6
export const HUBS = [1, 2] as const

const templates = new Map<number, Promise<Buffer>>()

/**
 * The cloud's database at the start of a seed: owners with one hub each, their products, and the customers of all. It is
 * made once.
 */
export function freshBooks(hubs: number = HUBS.length): Promise<Buffer> {
  const template = templates.get(hubs) ?? makeTemplate(hubs)
  templates.set(hubs, template)
  return template
}

async function makeTemplate(hubs: number): Promise<Buffer> {
  const database = new Sqlite(':memory:')
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: database })
  await fillBooks(db, hubs)
  const bytes = database.serialize()
  await db.close()
  return bytes
}

/** Fills an empty database. */
export async function fillBooks(db: CloudDatabase, hubs: number = HUBS.length): Promise<void> {
  await db.migrate()
  const q = db.kysely
  await q.insertInto('categories').values({ id: 1, name: 'Food', parent_id: null }).execute()
  for (let hubId = 1; hubId <= hubs; hubId++) {
    await q
      .insertInto('owners')
      .values({ id: hubId, name: `Owner ${hubId}` })
      .execute()
    await insertHub(q, hubId)
    await insertProducts(q, hubId)
    await db.transact((tx) => insertLayout(tx, hubId, hardwareOf(hubId)))
    await insertDeals(db, hubId)
  }
  for (let user = 1; user <= (CUSTOMERS * hubs) / HUBS.length; user++)
    await q
      .insertInto('users')
      .values({
        id: user,
        identity: `customer-${user}`,
        is_anonymous: 1,
        created_at: EPOCH,
        updated_at: EPOCH,
      })
      .execute()
}

async function insertHub(q: Queries, hubId: number): Promise<void> {
  await q
    .insertInto('hubs')
    .values(
      hubRow({
        id: hubId,
        owner_id: hubId,
        name: hubUser(hubId),
        tax_millipercent: 7250,
        created_at: EPOCH,
      }),
    )
    .execute()
}

/** The products of hub 1 on the shelves of `hardware.ts`, for a database without products. */
export async function insertAssortment(q: Queries): Promise<void> {
  await q.insertInto('categories').values({ id: 1, name: 'Food', parent_id: null }).execute()
  await insertProducts(q, 1)
}

async function insertProducts(q: Queries, hubId: number): Promise<void> {
  const stockedFacings = facingsOf(hubId)
  for (let nth = 1; nth <= PRODUCTS; nth++) {
    const id = productOf(hubId, nth)
    const facings = stockedFacings.filter((facing) => facing.product_id === id)
    const { cabinet, shelf, row } = facings.find((facing) => facing.primary)!
    await q
      .insertInto('products')
      .values({
        id,
        hub_id: hubId,
        name: `Product ${id}`,
        search_name: `product ${id}`,
        upc: `00000000000${nth}`,
        description: null,
        category_id: 1,
        subcategory_id: null,
        original_price: 99 + 101 * nth,
        markdown_percent: nth % 2 === 0 ? 15 : 0,
        purchase_price: 50 * nth,
        image_url: 'https://pictures.example/product.png',
        is_bestseller: 0,
        is_active: 1,
        cabinet,
        shelf,
        row,
        quantity: facings.reduce((sum, facing) => sum + facing.units, 0),
        reserved: 0,
      })
      .execute()
    await q
      .insertInto('facings')
      .values(
        facings.map((facing) => ({
          hub_id: hubId,
          cabinet: facing.cabinet,
          shelf: facing.shelf,
          row: facing.row,
          product_id: id,
          is_primary: facing.primary ? (1 as const) : (0 as const),
          quantity: facing.units,
        })),
      )
      .execute()
  }
}
