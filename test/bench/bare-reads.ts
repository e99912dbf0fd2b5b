import { createHmac } from 'node:crypto'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'
import { orderStatusName, type OrderStatus } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { MEDIA_SECRET } from './served-cloud.ts'

/**
 * The baseline of reads: Hono, and a prepared statement for each query, on the named file. No credentials, no
 * limits, no checks. The answers equal those of the cloud at the named address: pictures are signed.
 */
const [file, baseUrl] = process.argv.slice(2)
const database = new Sqlite(file)
database.pragma('journal_mode = WAL')

const inventory = database.prepare(`
  select p.id, p.name, p.upc, max(0, p.quantity) as quantity,
    max(0, p.quantity - p.reserved) as sellable_quantity, p.original_price,
    (p.original_price * (100 - p.markdown_percent) + 50) / 100 as discounted_price, p.purchase_price, p.cabinet, p.shelf,
    p."row", c.name as category
  from products as p join categories as c on c.id = p.category_id
  where p.hub_id = ? and p.is_active = 1 order by p.id`)

interface Line {
  order_id: number
  user_id: number
  total_price_original: number
  total_price_discounted: number
  payment_status: string
  processing_status: number
  created_at: number
  productUPC: string
  name: string
  qty: number
  qty_dropped: number
  refunded_quantity: number
  price: number
  image_url: string
}
const orders = database.prepare<[number, number], Line>(`
  with page as (
    select * from orders where hub_id = ? and id < ? and total is not null order by id desc limit 21)
  select page.id as order_id, page.user_id, page.total_price_original, page.total_price_discounted, page.payment_status,
    page.processing_status, page.created_at, i.upc as productUPC, i.name, i.qty, i.qty_dropped, i.refunded_quantity,
    i.unit_price as price, i.image_url
  from page join order_items as i on i.order_id = page.id order by page.id desc, i.id`)

interface Product {
  quantity: number
  image_url: string
  is_bestseller: 0 | 1
}
const products = database.prepare(`
  select p.id, p.name, p.upc, p.description, p.category_id, c.name as category, p.subcategory_id, s.name as subcategory,
    p.original_price, (p.original_price * (100 - p.markdown_percent) + 50) / 100 as discounted_price,
    p.quantity - p.reserved as quantity, p.cabinet, p.shelf, p."row", p.image_url, p.is_bestseller
  from products as p join categories as c on c.id = p.category_id left join categories as s on s.id = p.subcategory_id
  where p.hub_id = ? and p.is_active = 1 and p.search_name like ? order by p.search_name, p.id limit ? offset ?`)
const productCount = database
  .prepare('select count(*) from products where hub_id = ? and is_active = 1 and search_name like ?')
  .pluck()

const stepMs = defaultLimits.rules.fileAddressMs / 4
const { clock } = systemRuntime()

function signed(key: string): string {
  const until = (Math.floor(clock.now() / stepMs) + 1) * stepMs + defaultLimits.rules.fileAddressMs
  const expires = String(Math.ceil(until / 1000))
  const signature = createHmac('sha256', MEDIA_SECRET).update(`${expires}\n${key}`).digest('base64url')
  return `${baseUrl}/files/${key}?expires=${expires}&signature=${signature}`
}

/** Signs the pictures of one answer, each once. */
function pictures(): (key: string) => string {
  const known = new Map<string, string>()
  return (key) => {
    const address = known.get(key) ?? signed(key)
    known.set(key, address)
    return address
  }
}

function orderPage(lines: readonly Line[]) {
  const pictureOf = pictures()
  const byId = new Map<number, object & { order_items: object[] }>()
  for (const line of lines) {
    const {
      order_id: id,
      productUPC,
      name,
      qty,
      qty_dropped,
      refunded_quantity,
      price,
      image_url,
      ...order
    } = line
    let known = byId.get(id)
    if (!known) {
      known = { id, ...order, created_at: new Date(line.created_at).toISOString(), order_items: [] } as never
      byId.set(id, known)
    }
    known.order_items.push({
      productUPC,
      name,
      qty,
      dropped: qty_dropped >= qty,
      qty_dropped,
      refunded_quantity,
      price,
      image_url: pictureOf(image_url),
    })
  }
  const all = [...byId.values()] as { id?: number }[]
  const data = all.slice(0, 20)
  return { data, next_cursor: all.length > 20 ? data.at(-1)!.id : null, has_more: all.length > 20 }
}

interface OwnLine {
  [column: string]: number | string | null
}
const ownOrder = database.prepare<[number, number, number], OwnLine>(`
  select o.*, i.id as item_id, i.product_id, i.qty, i.upc, i.name, i.image_url, i.unit_price_original, i.unit_price, i.net,
    i.qty_dropped, i.refunded_quantity, i.bins as item_bins
  from orders as o join order_items as i on i.order_id = o.id
  where o.id = ? and o.user_id = ? and o.hub_id = ? order by i.id`)

const iso = (at: number | string | null | undefined): string | null =>
  at == null ? null : new Date(Number(at)).toISOString()

/** A collected order, which waits in no queue. */
function orderOf(lines: readonly OwnLine[]) {
  const pictureOf = pictures()
  const [o] = lines
  return {
    order_id: o!['id'],
    user_id: o!['user_id'],
    hub_id: o!['hub_id'],
    processing_status: o!['processing_status'],
    processing_status_name: orderStatusName(o!['processing_status'] as OrderStatus),
    payment_status: o!['payment_status'],
    items: lines.map((i) => ({
      order_item_id: i['item_id'],
      product_id: i['product_id'],
      productUPC: i['upc'],
      name: i['name'],
      qty: i['qty'],
      unit_price_original: i['unit_price_original'],
      price: i['unit_price'],
      line_total: i['net'],
      dropped: Number(i['qty_dropped']) >= Number(i['qty']),
      qty_dropped: i['qty_dropped'],
      refunded_quantity: i['refunded_quantity'],
      bin_number: (JSON.parse(String(i['item_bins'])) as number[])[0] ?? null,
      image_url: pictureOf(String(i['image_url'])),
    })),
    total_price_original: o!['total_price_original'],
    total_price_discounted: o!['total_price_discounted'],
    tax_total: o!['tax_total'],
    total: o!['total'],
    discount_total: Number(o!['total_price_original']) - Number(o!['total_price_discounted']),
    currency: o!['currency'],
    deals: o!['deals'] == null ? [] : (JSON.parse(String(o!['deals'])) as unknown[]),
    bins: JSON.parse(String(o!['bins'])) as number[],
    queue_position: null,
    expires_at: null,
    ready_at: iso(o!['ready_at']),
    version: o!['version'],
    created_at: iso(o!['created_at']),
    updated_at: iso(o!['updated_at']),
  }
}

const app = new Hono()
app.get('/order', (c) => {
  const { id, user_id: user, hub_id: hub } = c.req.query()
  return c.json(orderOf(ownOrder.all(Number(id), Number(user), Number(hub))) as object)
})
app.get('/inventory', (c) => c.json(inventory.all(Number(c.req.query('hub_id'))) as object[]))
app.get('/orders', (c) =>
  c.json(orderPage(orders.all(Number(c.req.query('hub_id')), Number(c.req.query('cursor') ?? 2 ** 53)))),
)
app.get('/products', (c) => {
  const hub = Number(c.req.query('hub_id'))
  const pattern = `%${c.req.query('product_name')}%`
  const rows = products.all(hub, pattern, 20, 0) as Product[]
  const pictureOf = pictures()
  c.header('X-Total-Count', String(productCount.get(hub, pattern)))
  return c.json(
    rows.map(({ is_bestseller, ...row }) => ({
      ...row,
      image_url: pictureOf(row.image_url),
      in_stock: row.quantity > 0,
      is_bestseller: is_bestseller === 1,
    })),
  )
})

const http = createAdaptorServer({ fetch: app.fetch }) as Server
process.once('disconnect', () => process.exit(0))
http.listen(0, '127.0.0.1', () => process.send!({ port: (http.address() as AddressInfo).port }))
