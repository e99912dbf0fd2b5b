import { hubRow } from '../world/seeds.ts'
import { sql } from 'kysely'
import { searchText } from '../../protocol/model/search-text.ts'
import { insertMany } from '../../cloud/demo/hub-data.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'

const PRODUCTS = 60
const CATEGORIES = 8
/** Audit records with the rare action and the rare actor. */
const RARE_RECORDS = 100
const TWO_YEARS_MS = 730 * 86_400_000
/** Rows of a statement, so that none reaches the database's time limit. */
const ROWS_AT_ONCE = 20_000

export interface BooksOptions {
  /** `DATABASE_URL` of an empty database. */
  url: string
  orders: number
  now: number
  /** Number of the hub's products, and lines per order. */
  products?: number
  lines?: number
}

/**
 * A database with hub 1 and its orders of two years: two lines each, every fiftieth partly refunded, one
 * customer per ten orders, and an audit record for each order. No summary exists yet.
 */
export async function writeBooks(options: BooksOptions): Promise<CloudDatabase> {
  const { url, orders, now, products = PRODUCTS, lines = 2 } = options
  const db = openDatabase({ url })
  await writeOwner(db)
  await writeHub(db, 1, { products, firstProduct: 1 })
  const users = Math.ceil(orders / 10)
  const refunds = Math.floor(orders / 50)
  // As many rare records in books of each size: a report of them has the same rows.
  const rare = Math.ceil(orders / RARE_RECORDS)
  const since = now - TWO_YEARS_MS
  const at = (order: string) => `cast(${since} + (${TWO_YEARS_MS} * 1.0 * ${order}) / ${orders} as bigint)`
  // Well distributed integers, equal in each run.
  const user = `1 + (i * 7919) % ${users}`
  const lineNumbers = Array.from({ length: lines }, (_, line) => line)
  const statements: [count: number, into: string, select: string][] = [
    [users, 'users (id, is_anonymous, created_at, updated_at)', 'i, 0, 0, 0 from n'],
    [
      orders,
      `orders (id, uuid, user_id, hub_id, owner_id, processing_status, payment_status, currency, total_price_original,
        total_price_discounted, tax_total, total, version, open_when_ready, bins, created_at, updated_at, queued_at)`,
      `i, '018f0000-0000-7000-8000-' || cast(100000000000 + i as text), ${user}, 1, 1, 60, 'completed', 'USD', 600,
        500, 40, 540, 1, 0, '[1]', ${at('i')}, ${at('i')}, ${at('i')} from n`,
    ],
    ...lineNumbers.map((line): [number, string, string] => [
      orders,
      `order_items (id, order_id, product_id, qty, upc, name, sold_name_id, image_url, unit_price_original, unit_price,
        purchase_price, net, tax, reserved, qty_dropped, qty_doubtful, refunded_quantity, bins)`,
      `${lines} * i + ${line}, i, p.id, 1, p.upc, p.name, p.id, p.image_url, 300, 250, 120, 250, 20, 0, 1, 0,
        case when i % 50 = 0 and ${line} = 1 then 1 else 0 end, '[1]'
        from n join products as p on p.id = 1 + (i * 31 + ${line} * 17) % ${products}`,
    ]),
    [
      orders,
      'payments (id, order_id, hub_id, owner_id, user_id, processor, method, amount, status, is_late, created_at, updated_at)',
      `i, i, 1, 1, ${user}, 'external', 'external', 540, 'completed', 0, ${at('i')}, ${at('i')} from n`,
    ],
    [
      refunds,
      'refunds (order_id, payment_id, hub_id, owner_id, item_id, quantity, amount, tax, reason, status, created_at, completed_at, updated_at)',
      `50 * i, 50 * i, 1, 1, ${lines * 50} * i + 1, 1, 270, 20, 'customer', 'succeeded', ${at('50 * i')}, ${at('50 * i')}, ${at('50 * i')} from n`,
    ],
    [
      orders,
      'audit_log (at, actor, action, hub_id, object, result, detail)',
      `${at('i')}, case when i % ${rare} = 0 then 'key:rarerare' else 'key:oftenoft' end,
        case when i % ${rare} = 0 then 'keys.create' else 'controls.open_bin' end, 1, 'order-' || i, 'executed', '{}' from n`,
    ],
  ]
  for (const [count, into, select] of statements)
    for (let first = 1; first <= count; first += ROWS_AT_ONCE)
      await sql
        .raw(
          `insert into ${into} with recursive n (i) as (select cast(${first} as bigint)
            union all select i + 1 from n where i < ${Math.min(count, first + ROWS_AT_ONCE - 1)}) select ${select}`,
        )
        .execute(db.kysely)
  return db
}

/** An empty database starts with an owner, and product categories. */
export async function writeOwner(db: CloudDatabase): Promise<void> {
  await db.migrate()
  await db.kysely.insertInto('owners').values({ id: 1, name: 'Owner' }).execute()
  for (let id = 1; id <= CATEGORIES; id += 1)
    await db.kysely
      .insertInto('categories')
      .values({ id, name: `Category ${id}`, parent_id: null })
      .execute()
}

/** Another hub of the owner, with its own products. */
export async function writeHub(
  db: CloudDatabase,
  id: number,
  { products, firstProduct }: { products: number; firstProduct: number },
): Promise<void> {
  await db.kysely
    .insertInto('hubs')
    .values(hubRow({ id, longitude: 0, latitude: 0, tax_millipercent: 8000 }))
    .execute()
  await writeProducts(
    db,
    id,
    Array.from({ length: products }, (_, index) => firstProduct + index),
  )
}

const KINDS = ['Sparkling', 'Dark', 'Salted', 'Green', 'Iced', 'Sweet', 'Crunchy', 'Fresh']
const THINGS = ['Water', 'Chocolate', 'Crisps', 'Tea', 'Coffee', 'Almonds', 'Crackers', 'Salad', 'Yogurt']

/**
 * As in the demo, products of one category share a stored picture, and its address is signed for each answer.
 */
const pictureOf = (id: number): string => `products/018f0000-0000-7000-8000-00000000000${id % CATEGORIES}.png`

function writeProducts(db: CloudDatabase, hubId: number, ids: readonly number[]): Promise<void> {
  const rows = ids.map((id) => {
    const name = `${KINDS[id % KINDS.length]} ${THINGS[id % THINGS.length]} ${id}`
    return {
      id,
      hub_id: hubId,
      name,
      search_name: searchText(name),
      upc: String(id).padStart(12, '0'),
      description: null,
      category_id: 1 + (id % CATEGORIES),
      subcategory_id: null,
      original_price: 300,
      markdown_percent: 0,
      purchase_price: 120,
      image_url: pictureOf(id),
      is_bestseller: 0,
      is_active: 1,
      cabinet: 1,
      shelf: 1,
      row: id,
      quantity: 1_000_000,
      reserved: 0,
    }
  })
  const facings = rows.map(({ id, hub_id, cabinet, shelf, row, quantity }) => ({
    hub_id,
    cabinet,
    shelf,
    row,
    product_id: id,
    is_primary: 1,
    quantity,
  }))
  return db.transact(async (tx) => {
    await insertMany(tx, 'products', rows)
    await insertMany(tx, 'facings', facings)
    await insertMany(
      tx,
      'sold_names',
      rows.map(({ id, hub_id, upc, search_name }) => ({ id, hub_id, upc, search_name })),
    )
  })
}

/** Prevents summaries of hub 1's past during another measurement. */
export async function leaveUnsummed({ kysely }: CloudDatabase): Promise<void> {
  await kysely
    .insertInto('sales_calendars')
    .values({ hub_id: 1, timezone: 'America/Chicago', is_whole: 1, run: 1 })
    .execute()
}
