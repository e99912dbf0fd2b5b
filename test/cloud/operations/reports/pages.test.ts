import { expect, test } from 'vitest'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { moveHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'
import { add, happen } from '../../events/support/endpoint.ts'
import { sendEvent } from '../../support/webhooks.ts'

interface Page {
  data: { id: string | number; type?: string; hub_id?: number }[]
  next_cursor: string | number | null
}

onEachDatabase('a page after a cursor', (open) => {
  test('a page of orders continues after an order whose payment has ended, and after its deletion', async () => {
    const { shop, owner } = await openService(open)
    const q = shop.context.db.kysely
    const first = await shop.paidOrder({ 1: 1 })
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: id, method: 'pm_card_authenticationRequired' })
    const last = await shop.paidOrder({ 1: 1 })
    const orders = async (query: string) => {
      const { status, json } = await owner('GET', `hubs/all_orders_paginated/?hub_id=1&limit=2${query}`)
      expect([status, json]).toEqual([200, expect.anything()])
      return json as Page
    }
    const idsOf = ({ data }: Page) => data.map((order) => order.id)
    const filter = '&from=2020-01-01'
    const page = await orders('')
    expect(idsOf(page)).toEqual([last.id, id])
    shop.clock.advance(16 * 60_000)
    await shop.work.drain()
    expect((await shop.order(id)).processing_status).toBe(0)
    const after = `&cursor=${page.next_cursor}`
    expect(idsOf(await orders(after))).toEqual([first.id])
    expect(idsOf(await orders(after + filter))).toEqual([first.id])
    for (const table of ['order_items', 'payments'] as const)
      await q.deleteFrom(table).where('order_id', '=', id).execute()
    await q.deleteFrom('orders').where('id', '=', id).execute()
    expect(idsOf(await orders(after))).toEqual([first.id])
    expect(idsOf(await orders(after + filter))).toEqual([first.id])
  })

  test('a page of payments continues after a refund that the bank has returned', async () => {
    const { shop, owner } = await openService(open)
    const { id } = await shop.paidOrder({ 1: 1 })
    shop.clock.advance(1000)
    expect((await owner('POST', `orders/${id}/refund`, { amount: 10 })).status).toBe(200)
    const page = (await owner('GET', 'payments?limit=1')).json as Page
    expect(page.data.map(({ type }) => type)).toEqual(['refund'])
    const [refund] = await shop.refunds(id)
    const returned = { id: refund!.processor_ref!, status: 'failed', failure_reason: 'lost_or_stolen_card' }
    await sendEvent(shop, { id: 'evt_back', type: 'refund.updated', object: { ...returned, amount: 10 } })
    expect((await shop.refunds(id))[0]!.status).toBe('failed')
    const next = (await owner('GET', `payments?limit=1&cursor=${page.next_cursor}`)).json as Page
    expect(next.data.map(({ type }) => type)).toEqual(['payment'])
  })

  test('a page of the fleet and of operations continues after a hub that was moved to another owner', async () => {
    const { shop, owner } = await openService(open)
    const { db } = shop.context
    await db.kysely.insertInto('owners').values({ id: 2, name: 'Owner 2', created_at: 0 }).execute()
    const hub = await db.kysely.selectFrom('hubs').selectAll().where('id', '=', 1).executeTakeFirstOrThrow()
    await db.kysely
      .insertInto('hubs')
      .values({ ...hub, id: 7, name: 'Seven' })
      .execute()
    const page = (await owner('GET', 'fleet?limit=1')).json as Page
    expect(page.data.map(({ hub_id }) => hub_id)).toEqual([1])
    await db.transact((tx) => moveHub(tx, shop.context, { hubId: 1, newOwner: 2 }))
    const next = (await owner('GET', `fleet?limit=1&cursor=${page.next_cursor}`)).json as Page
    expect(next.data.map(({ hub_id }) => hub_id)).toEqual([7])
    expect((await owner('GET', 'restock?cursor=1.1.1.1')).status).toBe(200)
    expect((await owner('GET', 'fleet?cursor=99')).status).toBe(400)
  })

  test('a page of webhooks or deliveries continues after a deleted row', async () => {
    const service = await openService(open)
    const { shop, owner } = service
    const [old, young] = [await add(service), await add(service)]
    const webhooks = (await owner('GET', 'webhooks?limit=1')).json as Page
    expect(webhooks.data.map(({ id }) => id)).toEqual([young.id])
    await happen(service, 1)
    await happen(service, 2)
    const path = `webhooks/${old.id}/deliveries`
    const [, oldest] = ((await owner('GET', path)).json as Page).data
    const deliveries = (await owner('GET', `${path}?limit=1`)).json as Page
    await shop.context.db.kysely
      .deleteFrom('webhook_deliveries')
      .where('id', '=', String(deliveries.next_cursor))
      .execute()
    expect((await owner('DELETE', `webhooks/${young.id}`)).status).toBe(204)
    const next = (await owner('GET', `webhooks?limit=1&cursor=${webhooks.next_cursor}`)).json as Page
    expect(next.data.map(({ id }) => id)).toEqual([old.id])
    const rest = (await owner('GET', `${path}?cursor=${deliveries.next_cursor}`)).json as Page
    expect(rest.data).toEqual([oldest])
  })
})
