import { expect, test } from 'vitest'
import { acknowledgeAlarm } from '../../../../cloud/events/alarms/alarms.ts'
import { refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { settleRefunds } from '../../../../cloud/commerce/refunds/settle-refunds.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop } from '../../../world/shop.ts'
import { deliver, sendEvent } from '../../support/webhooks.ts'
import {
  alarm,
  alarms,
  begun,
  HOUR,
  hours,
  only,
  restEndsAt,
  seen,
  settle,
  short,
  timesOut,
  unit,
  unreliable,
  who,
  type Weather,
  type World,
} from './support/failing-refunds.ts'

const conflict = { code: 'order_state_conflict' }

onEachDatabase('failed refunds that a person pays in another way', (open) => {
  test('a settled refund counts as refunded, is never asked of the processor again, and ends the alarm', async () => {
    const world = await short(open, 'refuses')
    const { shop, orderId } = world
    const both = await seen(world)
    expect(both.ids).toHaveLength(2)
    expect(await alarm(world)).toEqual({
      refund_ids: both.ids,
      amount: both.amount,
      currency: 'USD',
      reason: 'no',
    })
    await settle(world, both)
    expect((await shop.order(orderId)).payment_status).toBe('partially_refunded')
    expect((await shop.items(orderId)).map(({ refunded_quantity }) => refunded_quantity)).toEqual([1, 1])
    const { detail, ...record } = await shop.context.db.kysely
      .selectFrom('audit_log')
      .selectAll()
      .where('action', '=', 'orders.settle_refunds')
      .executeTakeFirstOrThrow()
    expect(record).toMatchObject({ actor: 'owner', hub_id: 1, object: `order-${orderId}` })
    expect(JSON.parse(detail)).toEqual({
      settled_ids: both.ids,
      amount: both.amount,
      currency: 'USD',
      reason: 'cash',
    })
    await restEndsAt(world, { bank: 0, outside: both.amount })
  })

  test('an acknowledgement of the alarm settles nothing', async () => {
    const world = await short(open, 'refuses')
    const { shop } = world
    const before = await seen(world)
    const [row] = await alarms(world)
    await shop.context.db.transact((tx) => acknowledgeAlarm(tx, shop.context, row!.id, 'owner'))
    expect(await seen(world)).toEqual(before)
    expect(await alarm(world)).toMatchObject({ refund_ids: before.ids })
  })

  test('a refund cannot be settled after the retry of the service has paid it', async () => {
    const world = await short(open, 'refuses')
    const before = await seen(world)
    world.weather.now = 'good'
    await hours(world, 2)
    await expect(settle(world, before)).rejects.toMatchObject(conflict)
    await restEndsAt(world, { bank: before.amount, outside: 0 })
  })

  test.for(['down', 'late'] as const)(
    'a refund cannot be settled while its retry is under way at a processor that is %s',
    async (weather) => {
      const world = await short(open, 'refuses')
      const before = await seen(world)
      world.weather.now = weather
      await hours(world, 1)
      await expect(settle(world, before)).rejects.toMatchObject(conflict)
      const retries = (await world.shop.refunds(world.orderId)).slice(2).map(({ id }) => id)
      await expect(settle(world, { ...before, ids: retries })).rejects.toMatchObject(conflict)
      expect(await alarm(world)).toMatchObject({ refund_ids: [], amount: 0 })
      await restEndsAt(world, { bank: before.amount, outside: 0 })
    },
  )

  test('a refund that was repeated by a person is not owed, and its repetition is owed if it fails', async () => {
    const world = await begun(open, 'refuses')
    for (let times = 0; times < 2; times += 1)
      await expect(unit(world, 1)).rejects.toMatchObject({ code: 'refund_failed' })
    await world.shop.work.drain()
    const [first, second] = await world.shop.refunds(world.orderId)
    expect((await seen(world)).ids).toEqual([second!.id])
    await expect(settle(world, { ids: [first!.id], amount: first!.amount })).rejects.toMatchObject(conflict)
    await settle(world, await seen(world))
    await timesOut(world, second!.amount)
  })

  test('a smaller refund that a person requests leaves the rest of a refund that the service owes', async () => {
    const world = await begun(open, 'refuses')
    await world.shop.report({
      kind: 'order.failed',
      order_id: world.orderId,
      reason: 'jam',
      bins: [],
      lines: [],
    })
    await hours(world, 24 * 5)
    const { amount: all } = await seen(world)
    expect(all).toBe(world.paid)
    world.weather.now = 'good'
    const { amount } = await unit(world, 1)
    const rest = await seen(world)
    expect(rest.amount).toBe(all - amount)
    await settle(world, rest)
    await restEndsAt(world, { bank: amount, outside: rest.amount })
  })

  test('a settlement that ends before its commit leaves the refund to the service', async () => {
    const world = await short(open, 'refuses')
    const before = await seen(world)
    const { context } = world.shop
    const settlement = { ...before, reason: 'cash', actor: 'owner' }
    await expect(
      context.db.transact(async (tx) => {
        await settleRefunds(tx, world.shop.services, world.orderId, settlement)
        throw new Error('killed')
      }),
    ).rejects.toThrow('killed')
    expect(await seen(world)).toEqual(before)
    await restEndsAt(world, { bank: before.amount, outside: 0 })
  })

  test('a refund is settled once by repeated and by simultaneous settlements', async () => {
    const world = await short(open, 'refuses')
    const before = await seen(world)
    const answers = await Promise.allSettled(Array.from({ length: 5 }, () => settle(world, before)))
    expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    await expect(settle(world, before)).rejects.toMatchObject(conflict)
    await restEndsAt(world, { bank: 0, outside: before.amount })
  })

  test('a settlement and the retry of the service at the same time pay the customer once', async () => {
    const world = await short(open, 'refuses')
    const before = await seen(world)
    world.weather.now = 'good'
    world.shop.clock.advance(2 * HOUR)
    const [settled] = await Promise.allSettled([settle(world, before), world.shop.work.drain()])
    const outside = settled.status === 'fulfilled' ? before.amount : 0
    await restEndsAt(world, { bank: before.amount - outside, outside })
  })

  test('the other failed refund of an order stays owed, and its retry pays only that one', async () => {
    const world = await short(open, 'refuses')
    const [first, second] = (await seen(world)).ids
    const one = await only(world, first!)
    const other = await only(world, second!)
    await settle(world, one)
    expect(await alarm(world)).toMatchObject({ refund_ids: [second], amount: other.amount })
    await restEndsAt(world, { bank: other.amount, outside: one.amount })
  })

  test('a later failure adds no amount that has been settled, and is not settled by ids that were seen before', async () => {
    const world = await begun(open, 'refuses')
    await expect(unit(world, 1)).rejects.toMatchObject({ code: 'refund_failed' })
    await world.shop.work.drain()
    const before = await seen(world)
    await expect(unit(world, 2)).rejects.toMatchObject({ code: 'refund_failed' })
    await world.shop.work.drain()
    const second = (await world.shop.refunds(world.orderId)).at(-1)!
    await settle(world, before)
    expect(await seen(world)).toEqual({ ids: [second.id], amount: second.amount })
    // The other unit of the settled line.
    await expect(unit(world, 1)).rejects.toMatchObject({ code: 'refund_failed' })
    await world.shop.work.drain()
    const third = (await world.shop.refunds(world.orderId)).at(-1)!
    const after = await seen(world)
    expect(after).toEqual({ ids: [second.id, third.id], amount: second.amount + third.amount })
    expect(before.amount + after.amount).toBe(world.paid)
    await settle(world, after)
    expect((await world.shop.order(world.orderId)).payment_status).toBe('refunded')
    await restEndsAt(world, { bank: 0, outside: world.paid })
  })

  test('a refund that fails after a second refund of its line was recorded is still owed', async () => {
    const world = await begun(open, 'good')
    const { shop } = world
    const units = [await unit(world, 1), await unit(world, 1)]
    const [first] = await shop.refunds(world.orderId)
    const object = { id: first!.processor_ref, status: 'failed', failure_reason: 'expired_or_canceled_card' }
    await shop.bank.returnRefund(first!.processor_ref!)
    await sendEvent(shop, { id: 'evt_back', type: 'refund.failed', object })
    await shop.work.drain()
    expect(await alarm(world)).toMatchObject({ refund_ids: [first!.id], amount: units[0]!.amount })
    await settle(world, await seen(world))
    await timesOut(world, units[0]!.amount)
  })

  test('a settlement of another amount than the owed amount is refused, also after a partial refund at the processor', async () => {
    const world = await begun(open, 'refuses')
    const { shop, orderId } = world
    await expect(refundOrder(shop.services, { orderId, ...who })).rejects.toMatchObject({
      code: 'refund_failed',
    })
    await shop.work.drain()
    const before = await seen(world)
    for (const wrong of [before.amount - 1, before.amount + 1])
      await expect(settle(world, { ...before, amount: wrong })).rejects.toMatchObject({
        code: 'invalid_amount',
        details: { owed: before.amount },
      })
    await shop.bank.giveBack((await shop.bank.intents())[0]!.id, 100)
    await deliver(shop)
    await expect(settle(world, before)).rejects.toMatchObject({ details: { owed: before.amount - 100 } })
    await settle(world, { ...before, amount: before.amount - 100 })
    await timesOut(world, before.amount - 100)
  })

  test('a refund cannot be settled before the processor was asked for refunds that the books have lost', async () => {
    const world = await begun(open, 'refuses')
    await expect(unit(world, 2)).rejects.toMatchObject({ code: 'refund_failed' })
    const before = await seen(world)
    await expect(settle(world, before)).rejects.toMatchObject(conflict)
    await world.shop.work.drain()
    await settle(world, before)
    await timesOut(world, before.amount)
  })

  test('a refund of another order is not settled', async () => {
    const world = await short(open, 'refuses')
    const { shop } = world
    const before = await seen(world)
    const other = { ...world, orderId: (await shop.paidOrder({ 1: 1 })).id }
    await expect(settle(other, before)).rejects.toMatchObject({ ...conflict, details: { owed_ids: [] } })
    expect(await seen(world)).toEqual(before)
  })

  test('a settlement of all the money of a waiting order cancels it, and of a unit leaves the unit on the shelf', async () => {
    const weather: { now: Weather } = { now: 'refuses' }
    const shop = await openShop(await open(), { wrapProcessor: (real) => unreliable(real, weather) })
    const { id: orderId, total } = await shop.paidOrder({ 1: 1, 2: 1 })
    const world: World = { shop, orderId, paid: total!, weather }
    for (const productId of [1, 2])
      await expect(unit(world, productId)).rejects.toMatchObject({ code: 'refund_failed' })
    await shop.work.drain()
    const [first, second] = (await seen(world)).ids
    await settle(world, await only(world, first!))
    expect((await shop.outbox()).at(-1)).toMatchObject({ kind: 'order.reduce', lines: [{ wanted: 0 }] })
    await settle(world, await only(world, second!))
    expect((await shop.outbox()).at(-1)).toMatchObject({ kind: 'order.cancel' })
    expect((await shop.order(orderId)).payment_status).toBe('refunded')
    await restEndsAt(world, { bank: 0, outside: world.paid })
  })
})
