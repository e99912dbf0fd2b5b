import { expect, test } from 'vitest'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { createOrder } from '../../../../cloud/commerce/orders/cart.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { raiseAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { stillHolds } from '../../../../cloud/gateway/hub-logins.ts'
import { publishHubChange } from '../../../../cloud/operations/hubs/hub-events.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import { uuid } from '../../../support/uuid.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openHub } from './support/owned-hub.ts'

/** The hub acknowledges all entries that the cloud has sent. */
const acknowledge = ({ kysely }: CloudDatabase) =>
  kysely
    .updateTable('hub_outboxes')
    .set((eb) => ({ base: eb.ref('last') }))
    .execute()

/** The digest of the password with which hub 1 signs in at the broker. */
async function loginOf({ kysely }: CloudDatabase): Promise<string> {
  const hub = await kysely
    .selectFrom('hubs')
    .select('mqtt_password_digest')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return hub.mqtt_password_digest
}

onEachDatabase('a hub that is retired', (open) => {
  test('a retired hub sells nothing, has neither login nor alarm, and its books stay readable', async () => {
    const { db, context, shop, one, orders, figures, sell, retire, call } = await openHub(open)
    const id = await sell()
    await db.transact((tx) => raiseAlarm(tx, context, { hubId: 1, kind: 'bin_fault', subject: 'bin 1' }))
    const digest = await loginOf(db)
    await acknowledge(db)
    const first = await retire()
    expect(await stillHolds(db.kysely, first.retiredAt, { hubId: 1, digest })).toBe(false)
    const userId = await shop.customer()
    await expect(createOrder(context, { userId, hubId: 1 })).rejects.toMatchObject({
      code: 'hub_not_accepting_orders',
    })
    await db.transact((tx) => raiseAlarm(tx, context, { hubId: 1, kind: 'hub_silent', subject: null }))
    expect((await call(one, 'alarms?state=open')).json['data']).toEqual([])
    expect((await call(one, 'hubs/get_hub_info/?hub_id=1')).json).toMatchObject({ hub_status: 'retired' })
    expect([await orders(one), await figures(one)]).toEqual([[id], 1])
    expect((await call(one, `orders/${id}/refund`, 'POST', {})).status).toBe(200)
    shop.clock.advance(5000)
    expect(await retire()).toEqual(first)
  })

  test('a retired hub keeps its login for a bounded time if it has not acknowledged the cancellation of an order that has ended', async () => {
    const { db, shop, retire } = await openHub(open)
    const { id, user_id: userId } = await shop.paidOrder({ 1: 1 })
    await acknowledge(db)
    shop.answer({ kind: 'timeout', commandId: 'c' })
    await deleteOrder(shop.services, { orderId: id, userId }, 'user')
    expect((await shop.order(id)).processing_status).toBe(OrderStatus.CANCELLED)
    const { retiredAt } = await retire()
    const digest = await loginOf(db)
    const { hubDrainMs } = shop.context.settings
    const holdsAfter = (ms: number) => stillHolds(db.kysely, retiredAt + ms, { hubId: 1, digest })
    expect([await holdsAfter(0), await holdsAfter(hubDrainMs)]).toEqual([true, false])
  })

  test('a hub is retired with unfinished orders only by --force, which ends and refunds them', async () => {
    const { db, shop, retire } = await openHub(open)
    const ids: number[] = []
    for (const status of [20, 30, 40, 50] as const) {
      const { id } = await shop.paidOrder({ 1: 2 })
      await db.kysely
        .updateTable('orders')
        .set({ processing_status: status, bins: '[1]' })
        .where('id', '=', id)
        .execute()
      // One of the units has dropped if the hub has started the order.
      if (status > 20)
        await db.kysely
          .updateTable('order_items')
          .set({ qty_dropped: 1 })
          .where('order_id', '=', id)
          .execute()
      ids.push(id)
    }
    await expect(retire()).rejects.toThrow('hub 1 has 4 unfinished orders')
    const retired = await retire(true)
    expect(retired.orders).toEqual(ids)
    // The hub must receive the cancellation, so its login stays for a limited time.
    const digest = await loginOf(db)
    const { hubDrainMs } = shop.context.settings
    const holdsAfter = (ms: number) => stillHolds(db.kysely, retired.retiredAt + ms, { hubId: 1, digest })
    expect([await holdsAfter(0), await holdsAfter(hubDrainMs)]).toEqual([true, false])
    await shop.work.drain()
    for (const id of ids) {
      const { processing_status: status, payment_status: paid } = await shop.order(id)
      expect([status === OrderStatus.CANCELLED || status === OrderStatus.FAILED, paid]).toEqual([
        true,
        'refunded',
      ])
    }
    expect((await shop.product(1)).reserved).toBe(0)
  })
})

onEachDatabase('a hub that is retired with --force while it cannot be reached', (open) => {
  test('a hub that is retired by --force while offline gets the cancellations by its stream, and its last reports reach the books', async () => {
    const { shop, retire } = await openHub(open)
    const waiting = await shop.paidOrder({ 1: 1 })
    const begun = await shop.paidOrder({ 1: 2 })
    await shop.report({ kind: 'order.preparing', order_id: begun.id, bins: [1] })
    const before = await shop.product(1)
    await retire(true)
    await shop.work.drain()
    expect((await shop.outbox()).slice(-3)).toMatchObject([
      { kind: 'order.cancel', order_id: waiting.uuid },
      { kind: 'order.cancel', order_id: begun.uuid },
      { kind: 'config', config: { accepting_orders: false } },
    ])
    const location = { cabinet: 1, shelf: 1, row: 1 }
    for (const [nr, order] of [waiting, begun].entries()) {
      const [line] = await shop.items(order.id)
      await shop.report(
        {
          kind: 'stock.dropped',
          operation_id: uuid(nr + 1),
          location,
          product_id: 1,
          order_id: order.id,
          line_id: line!.id,
          delta: -1,
          quantity: before.quantity - nr - 1,
          delivered: 1,
          bin: 1,
        },
        {
          kind: 'order.failed',
          order_id: order.id,
          reason: 'withdrawn',
          bins: [1],
          lines: [{ line_id: line!.id, dropped: 1, doubtful: 0, bins: [1] }],
        },
      )
      expect((await shop.items(order.id)).map(({ qty_dropped }) => qty_dropped)).toEqual([1])
      expect((await shop.order(order.id)).payment_status).toBe('refunded')
    }
    expect(await shop.product(1)).toMatchObject({ quantity: before.quantity - 2, reserved: 0 })
  })

  test('a hub that is retired by --force is announced as retired, not as paused', async () => {
    const { db, context, retire } = await openHub(open)
    await db.transact((tx) => publishHubChange(tx, context, 1))
    await retire()
    const events = await db.kysely.selectFrom('events').selectAll().where('hub_id', '=', 1).execute()
    const told = events.filter(({ type }) => type.includes('intake.changed'))
    expect(told.map((event) => JSON.stringify(event))).toEqual([expect.stringContaining('retired')])
  })
})

const place = { hub_id: 1, cabinet: 1, shelf: 1, row: 1 }
const deal = {
  name: 'Off',
  hub_id: 1,
  triggers: [{ type: 'ALWAYS' }],
  rewards: [{ type: 'AMOUNT_OFF', discount_pct_or_price: 30 }],
}

onEachDatabase('a retired hub', (open) => {
  test.each([
    ['POST', 'owners/controls/disable_bin?hub=1&bin=1', undefined],
    ['POST', 'owners/controls/enable_fridge?hub=1&fridge=1', undefined],
    ['POST', 'owners/controls/resume_orders?hub=1', undefined],
    ['PUT', 'owners/hubs/facings', { ...place, quantity: 7 }],
    ['PUT', 'owners/hubs/product/1/update_quantity', { quantity: 7 }],
    ['PUT', 'owners/product/1/update_price', { price: 99 }],
    ['POST', 'deals/', deal],
  ] as const)(
    'a retired hub accepts no change: %s %s is 409, and nothing is sent to the hub',
    async (method, path, body) => {
      const { app, shop, one, retire } = await openHub(open)
      const change = () => app.call(method, `/api/v1/${path}`, { ...one, ...(body && { body }) })
      await retire()
      const sent = (await shop.outbox()).length
      expect(await change()).toMatchObject({
        status: 409,
        json: { error: { code: 'hub_not_accepting_orders', details: { reason: 'retired' } } },
      })
      expect(await shop.outbox()).toHaveLength(sent)
    },
  )
})
