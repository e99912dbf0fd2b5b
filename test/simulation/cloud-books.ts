import type BetterSqlite3 from 'better-sqlite3'
import { insertLayout } from '../../cloud/demo/hub-data.ts'
import { openDatabase, type Queries } from '../../cloud/platform/store/database.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { insertDeals } from './deals.ts'
import { simulatedHardware, stockedFacings } from './hardware.ts'
import { EPOCH } from './scheduler.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'

export const CUSTOMERS = 6
const HUB = 1

let template: Buffer | undefined

/** The cloud's database as a seed finds it: one owner, hub 1, its products, its customers. Made once, then copied. */
export async function freshBooks(): Promise<BetterSqlite3.Database> {
  template ??= await makeTemplate()
  return new Sqlite(template)
}

async function makeTemplate(): Promise<Buffer> {
  const database = new Sqlite(':memory:')
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: database })
  await db.migrate()
  const q = db.kysely
  await q.insertInto('owners').values({ id: 1, name: 'Owner' }).execute()
  await q
    .insertInto('hubs')
    .values({
      id: HUB,
      owner_id: 1,
      name: hubUser(HUB),
      street_address_1: '1 Main Street',
      street_address_2: null,
      city: 'Springfield',
      state: 'IL',
      postal_code: '62701',
      longitude: -89.65,
      latitude: 39.8,
      timezone: 'America/Chicago',
      hub_status: 'active',
      mqtt_password_digest: '',
      accepting_orders: 1,
      disabled_bins: '[]',
      disabled_fridges: '[]',
      tax_basis_points: 725,
      created_at: EPOCH,
    })
    .execute()
  await insertAssortment(q)
  await db.transact((tx) => insertLayout(tx, HUB, simulatedHardware))
  await insertDeals(db)
  for (let user = 1; user <= CUSTOMERS; user++)
    await q
      .insertInto('users')
      .values({
        id: user,
        identity: `customer-${user}`,
        is_anonymous: 1,
        email: null,
        phone_number: null,
        first_name: null,
        last_name: null,
        profile_image_key: null,
        selected_hub_id: null,
        default_hub_id: null,
        created_at: EPOCH,
        updated_at: EPOCH,
      })
      .execute()
  const bytes = database.serialize()
  await db.close()
  return bytes
}

/** The products of hub 1 on the shelves of `hardware.ts`. */
export async function insertAssortment(q: Queries): Promise<void> {
  await q.insertInto('categories').values({ id: 1, name: 'Food', parent_id: null }).execute()
  const ids = [...new Set(stockedFacings.map((facing) => facing.product_id))]
  for (const id of ids) {
    const facings = stockedFacings.filter((facing) => facing.product_id === id)
    const { cabinet, shelf, row } = facings.find((facing) => facing.primary)!
    await q
      .insertInto('products')
      .values({
        id,
        hub_id: HUB,
        name: `Product ${id}`,
        search_name: `product ${id}`,
        upc: `00000000000${id}`,
        description: null,
        category_id: 1,
        subcategory_id: null,
        original_price: 99 + 101 * id,
        markdown_percent: id % 2 === 0 ? 15 : 0,
        purchase_price: 50 * id,
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
          hub_id: HUB,
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
