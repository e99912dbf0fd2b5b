import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { Pool, types } from 'pg'

/**
 * `bare-pay.ts` on PostgreSQL: the same rows in as many durable commits, one statement after another, each
 * prepared once per connection.
 */
types.setTypeParser(types.builtins.INT8, Number)
const pool = new Pool({ connectionString: process.argv[2], max: 8 })

const statements = {
  order: 'select id, user_id, hub_id from orders where id = $1 for no key update',
  lines: `select i.id, i.product_id, i.qty, p.original_price as price
    from order_items as i join products as p on p.id = i.product_id where i.order_id = $1 order by p.id`,
  reserve: 'update products set reserved = reserved + $1 where id = $2 and quantity - reserved >= $1',
  freezeLine: `update order_items set upc = p.upc, name = p.name, image_url = p.image_url, unit_price_original = p.original_price,
      unit_price = p.original_price, purchase_price = p.purchase_price, net = p.original_price, tax = 24, reserved = qty
    from products as p where p.id = order_items.product_id and order_items.id = $1`,
  freeze: `update orders set processing_status = 10, payment_status = 'pending', total_price_original = $1,
      total_price_discounted = $1, tax_total = $2, total = $3, version = version + 1, updated_at = $4 where id = $5`,
  pay: `insert into payments (order_id, hub_id, owner_id, user_id, processor, method, amount, status, is_late, created_at, updated_at)
    values ($1, $2, 1, $3, 'sandbox', 'pm_card_visa', $4, 'pending', 0, $5, $5) returning id`,
  intent: `insert into sandbox_intents (id, idempotency_key, amount, refunded, method, status, client_secret, metadata, created_at)
    values ($1, $2, $3, 0, 'pm_card_visa', 'succeeded', 'secret', '{}', $4)`,
  operation: `insert into money_operations (kind, subject, processor, state, processor_ref, started_at)
    values ('payment', $1, 'sandbox', 'succeeded', $2, $3)`,
  paid: `update payments set status = 'completed', updated_at = $1 where id = $2`,
  queue: `update orders set processing_status = 20, payment_status = 'completed', queued_order = $1, queued_at = $2,
      updated_at = $2 where id = $3`,
  next: 'update hub_outboxes set last = last + 1 where hub_id = $1 returning epoch, last',
  enqueue: 'insert into hub_outbox_entries (hub_id, epoch, seq, tag, body) values ($1, $2, $3, 0, $4)',
} as const

type Run = <Row extends object>(name: keyof typeof statements, ...values: unknown[]) => Promise<Row[]>

async function transaction<T>(work: (run: Run) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(
      async <Row extends object>(name: keyof typeof statements, ...values: unknown[]) => {
        const { rows } = await client.query<Row>({ name, text: statements[name], values })
        return rows
      },
    )
    await client.query('commit')
    return result
  } finally {
    client.release()
  }
}

interface Line {
  id: number
  product_id: number
  qty: number
  price: number
}

const begin = (id: number, now: number) =>
  transaction(async (run) => {
    const [order] = await run<{ user_id: number; hub_id: number }>('order', id)
    const { user_id: userId, hub_id: hub } = order!
    const cart = await run<Line>('lines', id)
    for (const line of cart) {
      await run('reserve', line.qty, line.product_id)
      await run('freezeLine', line.id)
    }
    const net = cart.reduce((sum, { qty, price }) => sum + qty * price, 0)
    const tax = 24 * cart.length
    await run('freeze', net, tax, net + tax, now, id)
    const [payment] = await run<{ id: number }>('pay', id, hub, userId, net + tax, now)
    return { payment: payment!.id, cart, hub, total: net + tax }
  })

const charge = (payment: number, amount: number, now: number) =>
  transaction(async (run) => {
    const ref = `pi_${payment}`
    await run('intent', ref, `payment:${payment}`, amount, now)
    return ref
  })

const finish = (id: number, paid: { hub: number; payment: number; ref: string; body: string; now: number }) =>
  transaction(async (run) => {
    const { hub, payment, ref, body, now } = paid
    await run('operation', payment, ref, now)
    await run('paid', now, payment)
    await run('queue', body, now, id)
    const [place] = await run<{ epoch: string; last: number }>('next', hub)
    await run('enqueue', hub, place!.epoch, place!.last, body)
  })

const app = new Hono()
app.post('/pay', async (c) => {
  const { order_id: id } = await c.req.json<{ order_id: number }>()
  const now = new Date().getTime()
  const { payment, cart, hub, total } = await begin(id, now)
  const ref = await charge(payment, total, now)
  const body = JSON.stringify({ kind: 'order.queued', order: { order_id: id, cart } })
  await finish(id, { hub, payment, ref, body, now })
  return c.json({ order_id: id, payment_id: ref, status: 'succeeded', amount: total })
})

const http = createAdaptorServer({ fetch: app.fetch }) as Server
process.once('disconnect', () => process.exit(0))
http.listen(0, '127.0.0.1', () => process.send!({ port: (http.address() as AddressInfo).port }))
