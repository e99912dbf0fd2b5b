import { expect, test } from 'vitest'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import { analyticsHandlers } from '../../../../cloud/commerce/analytics/reports.ts'
import { dealHandlers } from '../../../../cloud/commerce/deals/handlers.ts'
import { ownerOrderHandlers } from '../../../../cloud/commerce/orders/handlers.ts'
import { createOrder } from '../../../../cloud/commerce/orders/cart.ts'
import { refundHandlers } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { raiseAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { recordTemperatures } from '../../../../cloud/gateway/temperatures.ts'
import { stillHolds } from '../../../../cloud/gateway/hub-logins.ts'
import { alarmHandlers } from '../../../../cloud/operations/alarms/handlers.ts'
import { moveHub, retireHub } from '../../../../cloud/operations/ownership/hand-over.ts'
import { tellOfHub } from '../../../../cloud/operations/hubs/hub-events.ts'
import { temperatureHandlers } from '../../../../cloud/operations/hubs/temperatures.ts'
import { maintenanceHandlers } from '../../../../cloud/operations/maintenance/reports.ts'
import { appendAudit, listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { addDeal, redemptionsOf } from '../../commerce/deals/support/shop-deals.ts'
import { testApp } from '../../support/app.ts'
import { uuid } from '../../../support/uuid.ts'
import { onEachDatabase, type OpenDatabase } from '../../support/database.ts'
import { openShop, type Shop } from '../../support/shop.ts'

/** Hub 1 of owner 1 with a shop, and the API with keys of both owners. */
async function openHub(open: OpenDatabase) {
  const db = await open()
  let shop: Shop | undefined
  // The interface makes the hub, and the shop what refunds work with.
  const late = {
    get processor() {
      return shop!.services.processor
    },
    get commands() {
      return shop!.services.commands
    },
  }
  const app = await testApp({
    db,
    settings: { grantsKeptMs: 0 },
    handlersOf: (context, media) => ({
      ...refundHandlers(Object.assign(late, { context })),
      ...ownerOrderHandlers(context, media),
      ...analyticsHandlers(context, media),
      ...temperatureHandlers(context),
      ...alarmHandlers(context),
      ...maintenanceHandlers(context, media),
      ...dealHandlers(context, media),
    }),
  })
  shop = await openShop(db, { products: [{ price: 250, quantity: 50 }] })
  const { context } = shop
  const scopes = [
    'orders:read',
    'orders:write',
    'analytics:read',
    'hubs:read',
    'maintenance:read',
    'promotions:read',
  ] as const
  const [one, two] = [await app.key([...scopes], { ownerId: 1 }), await app.key([...scopes], { ownerId: 2 })]
  const call = async (key: string, path: string, method = 'GET', body?: unknown) => {
    const answer = await app.call(method, `/api/v1/owners/${path}`, {
      key,
      ...(body !== undefined && { body }),
    })
    return { status: answer.status, json: answer.json as Record<string, unknown> }
  }
  return {
    app,
    db,
    shop,
    context,
    one,
    two,
    call,
    move: (newOwner: number) => db.transact((tx) => moveHub(tx, context, { hubId: 1, newOwner })),
    retire: (force = false) =>
      db.transact((tx) => retireHub(tx, context, { hubId: 1, force, actor: 'command line' })),
    orders: async (key: string) =>
      ((await call(key, 'hubs/all_orders_paginated/?hub_id=1')).json['data'] as { id: number }[]).map(
        ({ id }) => id,
      ),
    figures: async (key: string) => (await call(key, 'total_orders/?hub_id=1')).json['total_orders'],
    /** Sells one unit, and has the hub hand it out. */
    sell: async (quantity = 1): Promise<number> => {
      const { id } = await shop.paidOrder({ 1: quantity })
      await finish(shop, id)
      shop.clock.advance(1000)
      return id
    },
  }
}

async function finish({ context }: Shop, id: number): Promise<void> {
  await context.db.kysely
    .updateTable('orders')
    .set({ processing_status: OrderStatus.COMPLETED, finished_at: context.runtime.clock.now() })
    .where('id', '=', id)
    .execute()
}

onEachDatabase('a hub that is moved to another owner', (open) => {
  test('leaves past orders and figures with the former owner, and gives the new owner none of them', async () => {
    const { one, two, orders, figures, sell, move, call } = await openHub(open)
    const before = [await sell(), await sell(2)]
    await move(2)
    expect(await orders(one)).toEqual(before.toReversed())
    expect(await orders(two)).toEqual([])
    expect([await figures(one), await figures(two)]).toEqual([2, 0])
    const after = await sell()
    expect(await orders(one)).toEqual(before.toReversed())
    expect(await orders(two)).toEqual([after])
    expect([await figures(one), await figures(two)]).toEqual([2, 1])
    expect((await call(two, `hubs/all_orders_paginated/?hub_id=1&search=product`)).json).toMatchObject({
      data: [{ id: after }],
    })
    expect((await call(one, `hubs/all_orders_paginated/?hub_id=1&search=product`)).json).toMatchObject({
      data: before.toReversed().map((id) => ({ id })),
    })
    expect((await call(two, `hubs/all_orders_paginated/?hub_id=1&cursor=${before[0]}`)).status).toBe(400)
  })

  test('is back with its first owner after a second move: that owner has both times and nothing between', async () => {
    const { one, two, orders, figures, sell, move } = await openHub(open)
    const first = await sell()
    await move(2)
    const second = await sell()
    await move(1)
    const third = await sell()
    expect(await orders(one)).toEqual([third, first])
    expect(await orders(two)).toEqual([second])
    expect([await figures(one), await figures(two)]).toEqual([2, 1])
  })

  test('has its past orders refunded by the former owner only, whose figures and events change', async () => {
    const { db, one, two, figures, sell, move, call } = await openHub(open)
    const id = await sell()
    await move(2)
    expect((await call(two, `orders/${id}/refund`, 'POST', {})).status).toBe(404)
    expect((await call(one, `orders/${id}/refund`, 'POST', {})).status).toBe(200)
    expect([await figures(one), await figures(two)]).toEqual([0, 0])
    const events = await db.kysely
      .selectFrom('events')
      .select(['type', 'owner_id'])
      .where('type', '=', 'order.refunded')
      .execute()
    expect(events).toEqual([{ type: 'order.refunded', owner_id: 1 }])
  })

  test('has deals whose use and limits count the redemptions of the present owner’s time alone', async () => {
    const { app, shop, one, two, sell, move } = await openHub(open)
    const off = (cents: number) => [{ type: 'AMOUNT_OFF' as const, discount_pct_or_price: cents }]
    const limited = await addDeal(shop, { rewards: off(30), constraints: [{ type: 'MAXUSES', value: '1' }] })
    const usage = async (key: string) => {
      const answer = await app.call('GET', `/api/v1/deals/${limited}/redemptions`, { key })
      const json = answer.json as Record<string, unknown>
      return [json['status'], json['usage'], json['total_discount'], (json['data'] as object[]).length]
    }
    await sell()
    expect(await usage(one)).toEqual(['exhausted', { total: 1, limit: 1, remaining: 0 }, 30, 1])
    await move(2)
    expect(await usage(two)).toEqual(['active', { total: 0, limit: 1, remaining: 1 }, 0, 0])
    expect((await app.call('GET', '/api/v1/deals/active/1', { key: two })).json).toMatchObject([
      { id: limited },
    ])
    await sell()
    expect(await usage(two)).toEqual(['exhausted', { total: 1, limit: 1, remaining: 0 }, 30, 1])
    await sell()
    expect(await redemptionsOf(shop)).toHaveLength(2)
  })

  test('has audit records of its past orders with the owner of the order, and all others with the owner of their time', async () => {
    const { db, shop, one, two, sell, move, call } = await openHub(open)
    const old = await sell()
    await move(2)
    const young = await sell()
    shop.clock.advance(1000)
    await call(one, `orders/${old}/refund`, 'POST', {})
    await call(two, `orders/${young}/refund`, 'POST', {})
    for (const object of ['order-', 'order-x', 'order-12345678901234567890', 'bin-1'])
      await appendAudit(db.kysely, shop.context.runtime, {
        actor: 'command line',
        action: 'test',
        hubId: 1,
        object,
        result: 'executed',
      })
    const objectsOf = async (ownerId: number) =>
      new Set((await listAudit(db.kysely, { ownerId, limit: 100 })).map(({ object }) => object))
    expect(await objectsOf(1)).toEqual(new Set([`order-${old}`]))
    expect(await objectsOf(2)).toEqual(
      new Set([`order-${young}`, 'order-', 'order-x', 'order-12345678901234567890', 'bin-1']),
    )
  })

  test('is 404 for the former owner, also for a key that names it; foreign hubs stay denied to such a key', async () => {
    const { app, one, two, call, move } = await openHub(open)
    const limited = await app.key(['hubs:read'], { ownerId: 1, hubs: [1] })
    await move(2)
    for (const key of [one, limited])
      expect(await call(key, 'hubs/get_hub_info/?hub_id=1')).toMatchObject({
        status: 404,
        json: { error: { code: 'hub_not_found' } },
      })
    expect((await call(two, 'hubs/get_hub_info/?hub_id=1')).status).toBe(200)
    expect(await call(limited, 'hubs/get_hub_info/?hub_id=2')).toMatchObject({
      status: 403,
      json: { error: { code: 'hub_access_denied' } },
    })
  })

  test('shows each owner the temperatures of that owner’s time', async () => {
    const { db, context, one, two, call, move } = await openHub(open)
    const record = (at: number, celsius: number) =>
      db.transact((tx) =>
        recordTemperatures(tx, 1, [
          { kind: 'temperature', fridge_number: 1, at, celsius, min: celsius, max: celsius },
        ]),
      )
    const now = context.runtime.clock.now()
    await record(now - 600_000, 3)
    await move(2)
    await record(now + 600_000, 5)
    const span = `from=${new Date(now - 3_600_000).toISOString()}&to=${new Date(now + 3_600_000).toISOString()}`
    const means = async (key: string) =>
      ((await call(key, `hubs/temperatures?hub_id=1&${span}`)).json as unknown as { mean: number }[]).map(
        ({ mean }) => mean,
      )
    expect(await means(one)).toEqual([3])
    expect(await means(two)).toEqual([5])
  })

  test('takes its open alarms along as new ones, but not alarms about sales', async () => {
    const { db, context, one, two, call, move } = await openHub(open)
    await db.transact(async (tx) => {
      await raiseAlarm(tx, context, { hubId: 1, kind: 'bin_fault', subject: 'bin 1' })
      await raiseAlarm(tx, context, { hubId: 1, kind: 'refund_failed', subject: 'order 7', soldBy: 1 })
    })
    await move(2)
    const openKinds = async (key: string) =>
      ((await call(key, 'alarms?state=open')).json['data'] as { kind: string }[]).map(({ kind }) => kind)
    expect(await openKinds(one)).toEqual(['refund_failed'])
    expect(await openKinds(two)).toEqual(['bin_fault'])
    // It comes again: the former owner hears nothing of it.
    await db.transact((tx) =>
      raiseAlarm(tx, context, { hubId: 1, kind: 'refund_failed', subject: 'order 7', soldBy: 1 }),
    )
    expect(await openKinds(two)).toEqual(['bin_fault'])
  })

  test('is refused while an order is being paid, prepared or collected, and nothing changes', async () => {
    const { db, shop, move } = await openHub(open)
    const { id } = await shop.paidOrder({ 1: 1 })
    for (const status of [10, 20, 30, 40, 50] as const) {
      await db.kysely.updateTable('orders').set({ processing_status: status }).where('id', '=', id).execute()
      await expect(move(2)).rejects.toThrow(`hub 1 has 1 unfinished order (${id})`)
    }
    expect(await db.kysely.selectFrom('former_owners').selectAll().execute()).toEqual([])
    await finish(shop, id)
    await expect(move(1)).rejects.toThrow('already belongs')
    await move(2)
  })

  test('keeps carts that were not paid: they are sold by the new owner', async () => {
    const { context, shop, one, two, orders, move } = await openHub(open)
    const userId = await shop.customer()
    const cart = await shop.cart(userId, { 1: 1 })
    await move(2)
    expect((await createOrder(context, { userId, hubId: 1 })).id).toBe(cart.id)
    const other = await shop.paidOrder({ 1: 1 })
    expect(await orders(two)).toEqual([other.id])
    expect(await orders(one)).toEqual([])
  })

  test('is taken from roles that name it', async () => {
    const { db, move } = await openHub(open)
    const role = (identity: string, hubs: string) => ({ identity, role: 'technician', hubs, created_at: 1 })
    await db.kysely
      .insertInto('roles')
      .values([role('a', '[1]'), role('b', '[1,2]'), role('c', '"*"'), role('d', '[2]')])
      .execute()
    expect((await move(2)).roles).toEqual(['a', 'b'])
    const left = await db.kysely
      .selectFrom('roles')
      .select(['identity', 'hubs'])
      .orderBy('identity')
      .execute()
    expect(left).toEqual([
      { identity: 'b', hubs: '[2]' },
      { identity: 'c', hubs: '"*"' },
      { identity: 'd', hubs: '[2]' },
    ])
  })
})

onEachDatabase('a hub that is retired', (open) => {
  test('sells nothing and has no alarm, its login ends after HUB_DRAIN_MS at the latest, and its books stay readable', async () => {
    const { db, context, shop, one, orders, figures, sell, retire, call } = await openHub(open)
    const id = await sell()
    await db.transact((tx) => raiseAlarm(tx, context, { hubId: 1, kind: 'bin_fault', subject: 'bin 1' }))
    const { mqtt_password_digest: digest } = await db.kysely
      .selectFrom('hubs')
      .select('mqtt_password_digest')
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    const first = await retire()
    const holdsAfter = (ms: number) => stillHolds(db.kysely, first.retiredAt + ms, { hubId: 1, digest })
    expect([await holdsAfter(0), await holdsAfter(context.settings.hubDrainMs)]).toEqual([true, false])
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

  test('ends unfinished orders with --force only, and refunds all of their money', async () => {
    const { db, shop, retire } = await openHub(open)
    const ids: number[] = []
    for (const status of [20, 30, 40, 50] as const) {
      const { id } = await shop.paidOrder({ 1: 2 })
      await db.kysely
        .updateTable('orders')
        .set({ processing_status: status, bins: '[1]' })
        .where('id', '=', id)
        .execute()
      // One of the units has dropped where the hub has begun.
      if (status > 20)
        await db.kysely
          .updateTable('order_items')
          .set({ qty_dropped: 1 })
          .where('order_id', '=', id)
          .execute()
      ids.push(id)
    }
    await expect(retire()).rejects.toThrow('hub 1 has 4 unfinished orders')
    expect((await retire(true)).orders).toEqual(ids)
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
  test('gets the cancellation of each order by its stream, and what fell at it meanwhile reaches the books', async () => {
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

  test('is announced as retired, not as paused', async () => {
    const { db, context, retire } = await openHub(open)
    await db.transact((tx) => tellOfHub(tx, context, 1))
    await retire()
    const events = await db.kysely.selectFrom('events').selectAll().where('hub_id', '=', 1).execute()
    const told = events.filter(({ type }) => type.includes('intake.changed'))
    expect(told.map((event) => JSON.stringify(event))).toEqual([expect.stringContaining('retired')])
  })
})
