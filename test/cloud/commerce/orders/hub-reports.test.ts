import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { hubSnapshot } from '../../../../cloud/commerce/fulfilment/hub-snapshot.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { drop, droppedLines, openShop, type Report } from '../../../world/shop.ts'
import { uuid } from '../../../support/uuid.ts'
import { commerceWork } from '../../../../cloud/commerce/work.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'

const MINUTE = 60_000

onEachDatabase('a hub’s reports', (open) => {
  test('an order goes from QUEUED to COMPLETED, and each drop reduces reservation and stock together', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [2] })
    await shop.report(drop(item!, 1, 4))
    expect(await shop.product(1)).toEqual({ quantity: 4, reserved: 1 })
    await shop.report(drop(item!, 2, 3), {
      kind: 'order.ready',
      order_id,
      bins: [2],
      lines: [{ line_id: item!.id, dropped: 2, doubtful: 0, bins: [2] }],
    })
    expect(await shop.product(1)).toEqual({ quantity: 3, reserved: 0 })
    expect(await shop.order(order_id)).toMatchObject({ processing_status: S.READY, bins: '[2]' })
    await shop.report({ kind: 'order.collecting', order_id }, { kind: 'order.completed', order_id })
    expect(await shop.order(order_id)).toMatchObject({
      processing_status: S.COMPLETED,
      payment_status: 'completed',
    })
    expect(await shop.refunds(order_id)).toEqual([])
  })

  test('a reported drop stays, whatever a hub that lost it reports later', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order_id)
    const line = { line_id: item!.id, dropped: 2, doubtful: 0, bins: [2] }
    await shop.report(drop(item!, 1, 4), drop(item!, 2, 3))
    await shop.report({ kind: 'order.ready', order_id, bins: [2], lines: [line] })
    const forgotten = { order_id, bins: [], lines: [{ ...line, dropped: 0, bins: [] }] }
    await shop.report({ kind: 'order.ready', ...forgotten })
    await shop.report({ kind: 'order.completed', order_id })
    await shop.report({ kind: 'order.timed_out', ...forgotten })
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 2, refunded_quantity: 0 }])
    expect(await shop.order(order_id)).toMatchObject({ processing_status: S.COMPLETED })
  })

  test('a drop that is repeated after READY, because the books lost it, was included in READY; a later found one was not', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 3 })
    const [item] = await shop.items(order_id)
    const line = { line_id: item!.id, dropped: 2, doubtful: 1, bins: [2] }
    await shop.report(drop(item!, 1, 4))
    await shop.report({ kind: 'order.ready', order_id, bins: [2], lines: [line] })
    await shop.report(drop(item!, 2, 3))
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 2 }])
    await shop.report(drop(item!, 3, 2))
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 3 }])
  })

  test('COMPLETED of an order refunds the undropped units if READY could not be applied', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [2] }, drop(item!, 1, 4))
    await shop.report({ kind: 'order.completed', order_id })
    await shop.work.drain()
    expect(await shop.refunds(order_id)).toMatchObject([{ reason: 'short', quantity: 1, amount: 270 }])
    expect(await shop.product(1)).toEqual({ quantity: 4, reserved: 0 })
  })

  test('a hub that reports more drops than ordered units is believed up to the order', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 3 })
    const [item] = await shop.items(order_id)
    const line = (dropped: number, doubtful: number) => ({ line_id: item!.id, dropped, doubtful, bins: [1] })
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines: [line(2, 1_000_000)] })
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 2, qty_doubtful: 1 }])
    await shop.report({ kind: 'order.ready', order_id, bins: [1], lines: [line(1_000_000, 1_000_000)] })
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 3, qty_doubtful: 0 }])
  })

  test('a drop of more units than were ordered counts only up to the order', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 3 })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] })
    for (const operation of [1, 2, 3])
      await shop.report({ ...drop(item!, operation, 2), delivered: 1_000_000 } as Report)
    expect(await shop.items(order_id)).toMatchObject([{ qty_dropped: 3, reserved: 0 }])
    expect((await shop.product(1)).reserved).toBe(0)
  })

  test('a repeated report has the effect of one', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    const [item] = await shop.items(order_id)
    const ready: Report = {
      kind: 'order.ready',
      order_id,
      bins: [1],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }],
    }
    const all: Report[] = [{ kind: 'order.preparing', order_id, bins: [1] }, drop(item!, 1, 4), ready]
    await shop.report(...all)
    const version = (await shop.order(order_id)).version
    await shop.report(...all, ready)
    expect((await shop.order(order_id)).version).toBe(version)
    expect(await shop.refunds(order_id)).toHaveLength(1)
    expect(await shop.product(1)).toEqual({ quantity: 4, reserved: 0 })
    expect(await shop.context.db.kysely.selectFrom('stock_ledger').selectAll().execute()).toHaveLength(1)
  })

  test('every change of an order that its customer sees increases its version and is published', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 3, 2: 1 })
    const other = await shop.paidOrder({ 2: 1 })
    const [item, second] = await shop.items(order_id)
    let told: number[] = []
    shop.context.db.onNews((news) => news.kind === 'order' && told.push(news.orderId))
    const versions = [(await shop.order(order_id)).version]
    const lines = (dropped: number, doubtful: number) => [
      { line_id: item!.id, dropped, doubtful, bins: [1] },
      { line_id: second!.id, dropped: 1, doubtful: 0, bins: [1] },
    ]
    const ready = (dropped: number, doubtful: number): Report => ({
      kind: 'order.ready',
      order_id,
      bins: [1],
      lines: lines(dropped, doubtful),
    })
    for (const report of [
      { kind: 'order.preparing' as const, order_id, bins: [1] },
      drop(item!, 1, 4),
      drop(second!, 2, 4),
      ready(1, 2),
      // Found later: by the ledger, and by the hub's report of the order.
      drop(item!, 3, 3),
      ready(3, 0),
    ]) {
      told = []
      await shop.report(report)
      expect(told).toContain(order_id)
      versions.push((await shop.order(order_id)).version)
    }
    expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b))
    const before = (await shop.order(other.id)).version
    told = []
    await shop.report(drop(item!, 3, 3), ready(3, 0))
    expect(told).toEqual([])
    expect((await shop.order(order_id)).version).toBe(versions.at(-1))
    expect((await shop.order(other.id)).version).toBe(before)
  })

  test('a short line is refunded automatically with its share of the tax', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 3, 2: 1 })
    const [first, second] = await shop.items(order_id)
    await shop.report(
      { kind: 'order.preparing', order_id, bins: [1] },
      {
        kind: 'order.ready',
        order_id,
        bins: [1],
        lines: [
          { line_id: first!.id, dropped: 2, doubtful: 1, bins: [1] },
          { line_id: second!.id, dropped: 1, doubtful: 0, bins: [1] },
        ],
      },
    )
    expect(await shop.refunds(order_id)).toMatchObject([
      { item_id: first!.id, quantity: 1, amount: Math.floor((750 + 62) / 3), tax: 20, reason: 'short' },
    ])
    await shop.work.drain()
    expect(await shop.order(order_id)).toMatchObject({
      processing_status: S.READY,
      payment_status: 'partially_refunded',
    })
    expect((await shop.items(order_id)).map(({ refunded_quantity }) => refunded_quantity)).toEqual([1, 0])
  })

  test('an unconfirmed unit is not sold again until it is resolved', async () => {
    const shop = await openShop(await open(), { products: [{ price: 100, quantity: 2 }] })
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    const operation_id = '00000000-0000-7000-8000-00000000000a'
    const unknown = {
      kind: 'operation.unknown',
      operation_id,
      device: 'cabinet-1',
      action: 'dispense',
      reason: 'no_drop',
      started_at: 0,
      location: { cabinet: 1, shelf: 1, row: 1 },
      order_id,
      line_id: item!.id,
      product_id: 1,
    } as const
    await shop.report(unknown, unknown)
    // The hub may still dispense the unit elsewhere, so the reservation lasts as long as the order.
    expect(await shop.product(1)).toEqual({ quantity: 2, reserved: 1 })
    await shop.report({ kind: 'order.failed', order_id, reason: 'nothing_dropped', bins: [], lines: [] })
    expect(await shop.product(1)).toEqual({ quantity: 2, reserved: 0 })
    const userId = await shop.customer()
    await expect(shop.cart(userId, { 1: 2 })).rejects.toMatchObject({
      details: { items: [{ available: 1 }] },
    })
    const state = { of: 'row', location: unknown.location, since: 1 } as const
    await shop.report({ kind: 'state', state: { ...state, blocked: 'no_drop' } })
    await expect(shop.cart(userId, { 1: 1 })).rejects.toMatchObject({
      details: { items: [{ available: 0 }] },
    })
    await shop.report({ kind: 'operation.settled', operation_id, by: 'count', happened: false })
    await expect(shop.cart(userId, { 1: 1 })).rejects.toMatchObject({ code: 'insufficient_stock' })
    await shop.report({ kind: 'state', state: { ...state, blocked: null } })
    await shop.cart(userId, { 1: 2 })
  })

  test('an order without a drop fails and is fully refunded', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2, 2: 1 })
    const lines = droppedLines(await shop.items(order_id), { units: 0 })
    await shop.report({ kind: 'order.failed', order_id, reason: 'no_stock', bins: [], lines })
    await shop.work.drain()
    expect(await shop.order(order_id)).toMatchObject({
      processing_status: S.FAILED,
      payment_status: 'refunded',
      failure_reason: 'no_stock',
    })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  test('an order that is not collected fails without a refund', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    await shop.report(
      { kind: 'order.preparing', order_id, bins: [1] },
      drop(item!, 1, 4),
      {
        kind: 'order.ready',
        order_id,
        bins: [1],
        lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [1] }],
      },
      { kind: 'order.unclaimed', order_id },
    )
    expect(await shop.order(order_id)).toMatchObject({
      processing_status: S.FAILED,
      payment_status: 'completed',
    })
    expect(await shop.refunds(order_id)).toEqual([])
  })

  test('a hub with a new store may report READY for an order that is QUEUED at the cloud', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    await shop.report({
      kind: 'order.ready',
      order_id,
      bins: [3],
      lines: [{ line_id: item!.id, dropped: 1, doubtful: 0, bins: [3] }],
    })
    expect(await shop.order(order_id)).toMatchObject({ processing_status: S.READY, bins: '[3]' })
  })

  test('a hub cannot change orders and lines of another hub', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 1 })
    const [item] = await shop.items(order_id)
    await shop.context.db.kysely
      .updateTable('orders')
      .set({ hub_id: 1 } as never)
      .execute()
    await expect(shop.report({ kind: 'order.preparing', order_id: 999, bins: [] })).rejects.toThrow(
      `no order ${uuid(999)}`,
    )
    await expect(shop.report({ ...drop(item!, 1, 4), line_id: 999 } as never)).rejects.toThrow(
      `order ${order_id} has no line 999`,
    )
  })

  test('the snapshot for a hub lists its orders with their dropped units', async () => {
    const shop = await openShop(await open())
    const { id: order_id } = await shop.paidOrder({ 1: 2 })
    await shop.paidOrder({ 2: 1 })
    const [item] = await shop.items(order_id)
    await shop.report({ kind: 'order.preparing', order_id, bins: [1] }, drop(item!, 1, 4))
    const { orders } = await shop.context.db.transact((tx) => hubSnapshot(tx, shop.context, 1))
    expect(orders).toMatchObject([
      { order: { number: order_id }, status: S.PREPARING, lines: [{ line_id: item!.id, dropped: 1 }] },
      { status: S.QUEUED, lines: [{ dropped: 0 }] },
    ])
  })
})

onEachDatabase('a hub that has become silent', (open) => {
  test('an order that a silent hub never received is ended and refunded when it can no longer start', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    shop.clock.advance(20 * MINUTE - 1)
    expect(await shop.work.drain(['order.overdue'])).toEqual([])
    shop.clock.advance(1)
    expect(await shop.work.drain(['order.overdue'])).toEqual([id])
    await shop.work.drain()
    expect(await shop.order(id)).toMatchObject({ processing_status: S.TIMED_OUT, payment_status: 'refunded' })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
    expect((await shop.outbox()).map(({ kind }) => kind)).toEqual(['order.queued', 'order.cancel'])
  })

  test('an order of a silent hub is published once, also in a repeated transaction', async () => {
    let commits = Infinity
    const db = await open({
      checkpoint: (point) => {
        if (point === 'db.before-commit' && commits-- === 0)
          throw Object.assign(new Error('deadlock'), { code: '40P01' })
      },
    })
    const shop = await openShop(db)
    const { id } = await shop.paidOrder({ 1: 1 })
    shop.clock.advance(20 * MINUTE)
    commits = 0
    expect(await shop.work.drain(['order.overdue'])).toEqual([id])
  })

  test('an order that a silent hub received waits a day for the hub', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 2 })
    await shop.context.db.kysely.updateTable('hub_outboxes').set({ base: 1 }).execute()
    await shop.context.db.kysely.deleteFrom('hub_outbox_entries').execute()
    const [item] = await shop.items(id)
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] }, drop(item!, 1, 4))
    shop.clock.advance(24 * 60 * MINUTE)
    expect(await shop.work.drain(['order.overdue'])).toEqual([])
    shop.clock.advance(1)
    expect(await shop.work.drain(['order.overdue'])).toEqual([id])
    expect(await shop.refunds(id)).toMatchObject([{ quantity: 1, reason: 'timed_out', amount: 270 }])
    expect((await shop.outbox()).at(-1)).toMatchObject({ kind: 'order.cancel' })
    // The hub returns and reports its work, which changes nothing any more.
    await shop.report({
      kind: 'order.ready',
      order_id: id,
      bins: [1],
      lines: [{ line_id: item!.id, dropped: 2, doubtful: 0, bins: [1] }],
    })
    expect(await shop.order(id)).toMatchObject({ processing_status: S.TIMED_OUT })
    expect(await shop.refunds(id)).toHaveLength(1)
  })

  test.each(['acknowledged', 'not acknowledged'])(
    'an order that an online hub never reports (%s) ends after start limit and preparation time',
    async (acknowledged) => {
      const shop = await openShop(await open())
      const { id, uuid } = await shop.paidOrder({ 1: 1 })
      if (acknowledged === 'acknowledged') {
        await shop.context.db.kysely.updateTable('hub_outboxes').set({ base: 1 }).execute()
        await shop.context.db.kysely.deleteFrom('hub_outbox_entries').execute()
      }
      shop.clock.advance(20 * MINUTE - 1)
      await shop.hear()
      expect(await shop.work.drain(['order.overdue'])).toEqual([])
      shop.clock.advance(1)
      expect(await shop.work.drain(['order.overdue'])).toEqual([id])
      await shop.work.drain()
      expect(await shop.order(id)).toMatchObject({
        processing_status: S.TIMED_OUT,
        payment_status: 'refunded',
        failure_reason: 'not_begun',
      })
      expect((await shop.outbox()).at(-1)).toEqual({ kind: 'order.cancel', order_id: uuid })
    },
  )

  test('an order that an online hub started and does not report further ends after a day', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    shop.clock.advance(24 * 60 * MINUTE)
    await shop.hear()
    expect(await shop.work.drain(['order.overdue'])).toEqual([])
    shop.clock.advance(1)
    expect(await shop.work.drain(['order.overdue'])).toEqual([id])
  })

  test('after an absence of the cloud a hub has time to report', async () => {
    const shop = await openShop(await open())
    const { id } = await shop.paidOrder({ 1: 1 })
    shop.clock.advance(60 * MINUTE)
    const restarted = new WorkRunner(shop.context, commerceWork(shop.services))
    // Monotonic clocks are not at whole milliseconds.
    shop.clock.advance(0.3)
    expect(await restarted.drain(['order.overdue'])).toEqual([])
    shop.clock.advance(2 * MINUTE)
    expect(await restarted.drain(['order.overdue'])).toEqual([id])
  })
})
