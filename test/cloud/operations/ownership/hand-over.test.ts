import { describe, expect, test } from 'vitest'
import { createOrder } from '../../../../cloud/commerce/orders/cart.ts'
import { raiseAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { recordTemperatures } from '../../../../cloud/gateway/temperatures.ts'
import { composeMorning } from '../../../../cloud/operations/reports/morning-mail.ts'
import { appendAudit, listAudit } from '../../../../cloud/platform/audit/audit.ts'
import { hubsWithContact } from '../../../../cloud/platform/credentials/hub-access.ts'
import { addDeal, redemptionsOf } from '../../commerce/deals/support/shop-deals.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { type Caller, finish, newcomers, openHub } from './support/owned-hub.ts'

onEachDatabase('a hub that is moved to another owner', (open) => {
  describe.each(newcomers)('as a %s of the new owner', (newcomer) => {
    test('a moved hub leaves past orders and figures with the former owner, and gives the new owner none', async () => {
      const { one, two, orders, figures, sell, move, call } = await openHub(open, newcomer)
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

    test('past orders of a moved hub can be refunded only by the former owner, and change only this owner’s figures and events', async () => {
      const { db, one, two, figures, sell, move, call } = await openHub(open, newcomer)
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

    test('the deals of a moved hub count only redemptions of the present owner’s time', async () => {
      const { app, shop, one, two, sell, move } = await openHub(open, newcomer)
      const off = (cents: number) => [{ type: 'AMOUNT_OFF' as const, discount_pct_or_price: cents }]
      const limited = await addDeal(shop, {
        rewards: off(30),
        constraints: [{ type: 'MAXUSES', value: '1' }],
      })
      const usage = async (caller: Caller) => {
        const answer = await app.call('GET', `/api/v1/deals/${limited}/redemptions`, caller)
        const json = answer.json as Record<string, unknown>
        return [json['status'], json['usage'], json['total_discount'], (json['data'] as object[]).length]
      }
      await sell()
      expect(await usage(one)).toEqual(['exhausted', { total: 1, limit: 1, remaining: 0 }, 30, 1])
      await move(2)
      expect(await usage(two)).toEqual(['active', { total: 0, limit: 1, remaining: 1 }, 0, 0])
      expect((await app.call('GET', '/api/v1/deals/active/1', two)).json).toMatchObject([{ id: limited }])
      await sell()
      expect(await usage(two)).toEqual(['exhausted', { total: 1, limit: 1, remaining: 0 }, 30, 1])
      await sell()
      expect(await redemptionsOf(shop)).toHaveLength(2)
    })

    test('audit records of past orders belong to the order’s owner, and other records to the owner at that time', async () => {
      const { db, shop, one, two, sell, move, call } = await openHub(open, newcomer)
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

    test('a moved hub is 404 for the former owner, also for a key that names it; foreign hubs stay denied to such a key', async () => {
      const { app, one, two, call, move } = await openHub(open, newcomer)
      const limited = { key: await app.key(['hubs:read'], { ownerId: 1, hubs: [1] }) }
      await move(2)
      for (const caller of [one, limited])
        expect(await call(caller, 'hubs/get_hub_info/?hub_id=1')).toMatchObject({
          status: 404,
          json: { error: { code: 'hub_not_found' } },
        })
      expect((await call(two, 'hubs/get_hub_info/?hub_id=1')).status).toBe(200)
      expect(await call(limited, 'hubs/get_hub_info/?hub_id=2')).toMatchObject({
        status: 403,
        json: { error: { code: 'hub_access_denied' } },
      })
    })

    test('each owner of a moved hub sees the temperatures of that owner’s time', async () => {
      const { db, context, one, two, call, move } = await openHub(open, newcomer)
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
      const means = async (caller: Caller) =>
        (
          (await call(caller, `hubs/temperatures?hub_id=1&${span}`)).json as unknown as { mean: number }[]
        ).map(({ mean }) => mean)
      expect(await means(one)).toEqual([3])
      expect(await means(two)).toEqual([5])
    })

    test('open alarms of a moved hub become new alarms, but not alarms about sales', async () => {
      const { app, db, context, one, two, call, move } = await openHub(open, newcomer)
      await db.transact(async (tx) => {
        await raiseAlarm(tx, context, { hubId: 1, kind: 'bin_fault', subject: 'bin 1' })
        await raiseAlarm(tx, context, { hubId: 1, kind: 'refund_failed', subject: 'order 7', soldBy: 1 })
      })
      await move(2)
      const openKinds = async (caller: Caller) =>
        ((await call(caller, 'alarms?state=open')).json['data'] as { kind: string }[]).map(({ kind }) => kind)
      expect(await openKinds(one)).toEqual(['refund_failed'])
      expect(await openKinds(two)).toEqual(['bin_fault'])
      // People, the fleet report and the morning mail of the new owner show only its own alarms.
      await db.kysely
        .insertInto('roles')
        .values({ identity: 'ada', role: 'technician', hubs: '[1]', created_at: 0 })
        .execute()
      const token = await app.issuer.token({ sub: 'ada' })
      const read = async (path: string) =>
        (await app.call('GET', `/api/v1/owners/${path}`, { token })).json as { data: object[] }
      expect((await read('alarms?state=open')).data).toMatchObject([{ kind: 'bin_fault' }])
      const [fault] = (await read('alarms?state=open')).data as { severity: string }[]
      const counts = { critical: 0, warning: 0, info: 0, [fault!.severity]: 1 }
      expect((await read('fleet')).data).toMatchObject([{ hub_id: 1, alarms: counts }])
      const hub = await hubsWithContact(db.kysely).where('hubs.id', '=', 1).executeTakeFirstOrThrow()
      const about = { day: '2026-01-02', now: context.runtime.clock.now(), currency: 'USD' }
      expect((await composeMorning(db.kysely, hub, about)).text).not.toContain('order 7')
      // The alarm is raised again, and the former owner is not notified.
      await db.transact((tx) =>
        raiseAlarm(tx, context, { hubId: 1, kind: 'refund_failed', subject: 'order 7', soldBy: 1 }),
      )
      expect(await openKinds(two)).toEqual(['bin_fault'])
    })

    test('unpaid carts of a moved hub are kept, and are sold by the new owner', async () => {
      const { context, shop, one, two, orders, move } = await openHub(open, newcomer)
      const userId = await shop.customer()
      const cart = await shop.cart(userId, { 1: 1 })
      await move(2)
      expect((await createOrder(context, { userId, hubId: 1 })).id).toBe(cart.id)
      const other = await shop.paidOrder({ 1: 1 })
      expect(await orders(two)).toEqual([other.id])
      expect(await orders(one)).toEqual([])
    })
  })

  test('a hub that returns to its first owner shows both of that owner’s times and nothing between', async () => {
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

  test('a move is refused while an order is being paid, prepared or collected, and nothing changes', async () => {
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

  test('a moved hub is removed from roles that name it', async () => {
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
