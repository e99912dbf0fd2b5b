import { expect, test } from 'vitest'
import { routes } from '../../protocol/contract/routes.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { onEachDatabase } from '../world/database.ts'
import type { Call, Caller } from './walk/call.ts'
import { openWorld, type World } from './walk/world.ts'

interface Page {
  data: { id: number; processing_status: number }[]
  next_cursor: number | null
}

const ask = (world: World, query: Call['query'] = {}, headers = {}, as: Caller = 'owner') =>
  world.ask(routes['owner.orders.list'], { as, query: { hub_id: 1, ...query }, headers })
const ids = async (world: World, query: Call['query'] = {}) =>
  ((await ask(world, query)).json as Page).data.map(({ id }) => id)

/** Five orders, one an hour from 22:30 on in Chicago, of which the second has failed. A cart is not listed. */
async function fill(world: World): Promise<void> {
  const { shop } = world
  const q = shop.context.db.kysely
  await q.updateTable('hubs').set({ timezone: 'America/Chicago' }).where('id', '=', 1).execute()
  await q.updateTable('products').set({ quantity: 100 }).execute()
  await q.updateTable('facings').set({ quantity: 100 }).execute()
  shop.clock.advance(Date.parse('2025-11-03T04:30:00Z') - shop.clock.now())
  for (const status of [60, 90, 60, 60, 60] as const) {
    await shop.hear()
    const { id } = await shop.paidOrder({ 1: 2, 2: 1 })
    await q.updateTable('orders').set({ processing_status: status }).where('id', '=', id).execute()
    shop.clock.advance(3_600_000)
  }
  await shop.hear()
  await shop.cart(await shop.customer(), { 1: 1 })
}

onEachDatabase('the order history', (open) => {
  test('orders are filtered by days of the hub’s calendar, by time and by status, page by page', async () => {
    const world = await openWorld(open)
    await fill(world)
    expect(await ids(world)).toEqual([5, 4, 3, 2, 1])
    expect(await ids(world, { from: '2025-11-02', to: '2025-11-02' })).toEqual([2, 1])
    expect(await ids(world, { from: '2025-11-03' })).toEqual([5, 4, 3])
    expect(await ids(world, { from: '2025-11-03T05:30:00Z', to: '2025-11-03T07:30:00Z' })).toEqual([3, 2])
    expect(await ids(world, { status: ['FAILED'] })).toEqual([2])
    expect(await ids(world, { status: [OrderStatus.COMPLETED, 'FAILED'] })).toEqual([5, 4, 3, 2, 1])
    expect(await ids(world, { status: [OrderStatus.QUEUED] })).toEqual([])
    expect(await ids(world, { status: ['FAILED'], search: 'product 1' })).toEqual([2])
    expect(await ids(world, { to: '2025-11-02', search: '3' })).toEqual([])
    const first = (await ask(world, { from: '2025-11-02', limit: 2 })).json as Page
    expect(first).toMatchObject({ data: [{ id: 5 }, { id: 4 }], next_cursor: 4 })
    expect(await ids(world, { from: '2025-11-02', limit: 2, cursor: 4 })).toEqual([3, 2])
    expect((await ask(world, { status: ['DONE'] })).status).toBe(422)
    expect((await ask(world, { from: '2025-11-03', to: '2025-11-02' })).status).toBe(422)
  })

  test('the CSV has all matching orders with the totals of the sale and the refunded money', async () => {
    const world = await openWorld(open)
    await fill(world)
    await world.owner('POST', 'orders/5/refund', { amount: 100 })
    const { json, headers } = await ask(world, { limit: 1, from: '2025-11-03' }, { Accept: 'text/csv' })
    expect(headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
    const [head, newest, ...others] = (json as string).split('\r\n')
    expect(head).toBe(
      'order_id,created_at,hub_id,user_id,processing_status,payment_status,units,total_price_original,total_price_discounted,discount_total,tax_total,total,refunded_total,currency',
    )
    expect(newest).toMatch(
      /^5,2025-11-03T08:30:0\d\.\d{3}Z,1,\d+,60,partially_refunded,3,699,679,20,56,735,100,USD$/,
    )
    expect(others.map((line) => line.split(',')[0])).toEqual(['4', '3', ''])
    expect((await ask(world, { search: 'product 2' }, { Accept: 'text/csv' })).json).toMatch(
      /^order_id(.*\r\n){6}$/,
    )
  })
})
