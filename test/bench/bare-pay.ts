import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { Sqlite } from '../../cloud/platform/store/sqlite-driver.ts'

/**
 * The baseline of a payment: Hono, and the minimum of rows for a cart that is paid by card. The durable
 * commits are: the frozen order with the started payment; the processor's own books; the completed payment
 * with the queued order and its outbox entry. No credentials, no limits, no deals, no checks.
 */
const db = new Sqlite(process.argv[2])
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')

const order = db.prepare<[number], { id: number; user_id: number; hub_id: number }>(
  'select id, user_id, hub_id from orders where id = ?',
)
const lines = db.prepare<[number], { id: number; product_id: number; qty: number; price: number }>(`
  select i.id, i.product_id, i.qty, p.original_price as price
  from order_items as i join products as p on p.id = i.product_id where i.order_id = ?`)
const reserve = db.prepare(
  'update products set reserved = reserved + ? where id = ? and quantity - reserved >= ?',
)
const freezeLine = db.prepare(`
  update order_items set upc = p.upc, name = p.name, image_url = p.image_url, unit_price_original = p.original_price,
    unit_price = p.original_price, purchase_price = p.purchase_price, net = p.original_price, tax = 24, reserved = qty
  from products as p where p.id = order_items.product_id and order_items.id = ?`)
const freeze = db.prepare(`
  update orders set processing_status = 10, payment_status = 'pending', total_price_original = ?, total_price_discounted = ?,
    tax_total = ?, total = ?, version = version + 1, updated_at = ? where id = ?`)
const pay = db.prepare(`
  insert into payments (order_id, hub_id, owner_id, user_id, processor, method, amount, status, is_late, created_at, updated_at)
  values (?, ?, 1, ?, 'sandbox', 'pm_card_visa', ?, 'pending', 0, ?, ?)`)
const intent = db.prepare(`
  insert into sandbox_intents (id, idempotency_key, amount, refunded, method, status, client_secret, metadata, created_at)
  values (?, ?, ?, 0, 'pm_card_visa', 'succeeded', 'secret', '{}', ?)`)
const operation = db.prepare(`
  insert into money_operations (kind, subject, processor, state, processor_ref, started_at)
  values ('payment', ?, 'sandbox', 'succeeded', ?, ?)`)
const paid = db.prepare(`update payments set status = 'completed', updated_at = ? where id = ?`)
const queue = db.prepare(`
  update orders set processing_status = 20, payment_status = 'completed', queued_order = ?, queued_at = ?, updated_at = ?
  where id = ?`)
const next = db.prepare(`update hub_outboxes set last = last + 1 where hub_id = ? returning epoch, last`)
const enqueue = db.prepare(
  'insert into hub_outbox_entries (hub_id, epoch, seq, tag, body) values (?, ?, ?, 0, ?)',
)

const begin = db.transaction((id: number, now: number) => {
  const { user_id: userId, hub_id: hub } = order.get(id)!
  const cart = lines.all(id)
  for (const line of cart) {
    if (reserve.run(line.qty, line.product_id, line.qty).changes !== 1) throw new Error('out of stock')
    freezeLine.run(line.id)
  }
  const net = cart.reduce((sum, { qty, price }) => sum + qty * price, 0)
  const tax = 24 * cart.length
  freeze.run(net, net, tax, net + tax, now, id)
  const payment = Number(pay.run(id, hub, userId, net + tax, now, now).lastInsertRowid)
  return { payment, cart, hub, total: net + tax }
})
const charge = db.transaction((payment: number, amount: number, now: number) => {
  const ref = `pi_${payment}`
  intent.run(ref, `payment:${payment}`, amount, now)
  return ref
})
const finish = db.transaction(
  (id: number, hub: number, payment: number, ref: string, body: string, now: number) => {
    operation.run(payment, ref, now)
    paid.run(now, payment)
    queue.run(body, now, now, id)
    const { epoch, last } = next.get(hub) as { epoch: string; last: number }
    enqueue.run(hub, epoch, last, body)
  },
)

const app = new Hono()
app.post('/pay', async (c) => {
  const { order_id: id } = await c.req.json<{ order_id: number }>()
  const now = new Date().getTime()
  const { payment, cart, hub, total } = begin.immediate(id, now)
  const ref = charge.immediate(payment, total, now)
  finish.immediate(
    id,
    hub,
    payment,
    ref,
    JSON.stringify({ kind: 'order.queued', order: { order_id: id, cart } }),
    now,
  )
  return c.json({ order_id: id, payment_id: ref, status: 'succeeded', amount: total })
})

const http = createAdaptorServer({ fetch: app.fetch }) as Server
process.once('disconnect', () => process.exit(0))
http.listen(0, '127.0.0.1', () => process.send!({ port: (http.address() as AddressInfo).port }))
