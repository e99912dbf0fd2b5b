import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { refundItem, refundOrder } from '../../../../cloud/commerce/refunds/refund-requests.ts'
import { onEachProcessor } from '../../support/each-processor.ts'
import { droppedLines, type Shop } from '../../../world/shop.ts'
import { hubSnapshot } from '../../../../cloud/commerce/fulfilment/hub-snapshot.ts'

const who = { mayTouch: () => Promise.resolve(true), actor: 'owner' }
const line = (shop: Shop, orderId: number, productId: number, quantity = 1) =>
  refundItem(shop.services, { orderId, ...who, productId, quantity })
const whole = (shop: Shop, orderId: number, amount?: number) =>
  refundOrder(shop.services, { orderId, ...who, amount })

/** Lines of 2 × 250 (41 tax) and 3 × 179 (44 tax). */
async function preparing(shop: Shop): Promise<number> {
  const { id } = await shop.paidOrder({ 1: 2, 2: 3 })
  await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
  return id
}

onEachProcessor('refunds of a line', (open) => {
  test('a refund of a line returns the frozen share of its units with their tax, to the cent, and the remaining tax', async () => {
    const shop = await open()
    const id = await preparing(shop)
    expect(await line(shop, id, 2)).toEqual({ paymentStatus: 'partially_refunded', amount: 193, taxLeft: 71 })
    // Later changes of price and tax rate do not matter.
    await shop.context.db.kysely.updateTable('products').set({ original_price: 999 }).execute()
    await shop.context.db.kysely.updateTable('hubs').set({ tax_millipercent: 20_000 }).execute()
    expect(await line(shop, id, 2, 2)).toEqual({
      paymentStatus: 'partially_refunded',
      amount: 388,
      taxLeft: 41,
    })
    expect(await line(shop, id, 1, 2)).toEqual({ paymentStatus: 'refunded', amount: 541, taxLeft: 0 })
    expect((await shop.items(id)).map(({ refunded_quantity }) => refunded_quantity)).toEqual([2, 3])
    const [intent] = await shop.bank.intents()
    expect(intent).toMatchObject({ amount: 1122, refunded: 1122 })
  })

  test('a refund of a line finds it by its product, or by the UPC at the sale', async () => {
    const shop = await open()
    const q = shop.context.db.kysely
    await q.updateTable('products').set({ upc: '012345678905' }).where('id', '=', 2).execute()
    const id = await preparing(shop)
    await q.updateTable('products').set({ upc: '999999999993' }).where('id', '=', 2).execute()
    expect((await line(shop, id, 12345678905)).amount).toBe(193)
    await expect(line(shop, id, 999999999993)).rejects.toMatchObject({ code: 'product_not_in_order' })
    await expect(line(shop, id, 3)).rejects.toMatchObject({ code: 'product_not_in_order' })
  })

  test('a refund of more units than are left is refused, also for a fully refunded order', async () => {
    const shop = await open()
    const id = await preparing(shop)
    await expect(line(shop, id, 1, 3)).rejects.toMatchObject({
      code: 'insufficient_quantity',
      details: { remaining: 2 },
    })
    await line(shop, id, 1)
    await expect(line(shop, id, 1, 2)).rejects.toMatchObject({ details: { remaining: 1 } })
    await whole(shop, id)
    await expect(line(shop, id, 2)).rejects.toMatchObject({ code: 'insufficient_quantity' })
  })

  test('refunds of lines and of the order share the rest: a line after an amount takes at most the remainder', async () => {
    const shop = await open()
    const id = await preparing(shop)
    await line(shop, id, 2)
    await whole(shop, id, 829)
    // 100 of 1122 cents are left, and the two other units cost 388.
    expect(await line(shop, id, 2, 2)).toEqual({ paymentStatus: 'refunded', amount: 100, taxLeft: 0 })
    await expect(whole(shop, id)).rejects.toMatchObject({ code: 'already_refunded' })
    const rows = await shop.refunds(id)
    expect(rows.reduce((sum, { amount }) => sum + amount, 0)).toBe(1122)
    expect(rows.reduce((sum, { tax }) => sum + tax, 0)).toBe(85)
    expect(rows.every(({ amount, tax }) => tax >= 0 && tax <= amount)).toBe(true)
  })

  test('a refunded unit is not refunded again if it does not drop', async () => {
    const shop = await open()
    const id = await preparing(shop)
    const [first, second] = await shop.items(id)
    await line(shop, id, 1)
    const lines = [
      { line_id: first!.id, dropped: 1, doubtful: 0, bins: [1] },
      { line_id: second!.id, dropped: 1, doubtful: 0, bins: [1] },
    ]
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines })
    await shop.work.drain()
    expect(await shop.refunds(id)).toMatchObject([
      { item_id: first!.id, quantity: 1, reason: 'customer' },
      { item_id: second!.id, quantity: 2, reason: 'short', amount: 387 },
    ])
  })

  test('a refund of a free unit is recorded, and returns nothing', async () => {
    const shop = await open({
      products: [
        { price: 1, quantity: 5 },
        { price: 500, quantity: 5 },
      ],
    })
    const { id } = await shop.paidOrder({ 1: 1, 2: 1 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    await shop.context.db.kysely
      .updateTable('order_items')
      .set({ net: 0, tax: 0 })
      .where('product_id', '=', 1)
      .execute()
    expect(await line(shop, id, 1)).toMatchObject({ paymentStatus: 'completed', amount: 0 })
    expect(await shop.items(id)).toMatchObject([{ refunded_quantity: 1 }, { refunded_quantity: 0 }])
    await expect(line(shop, id, 1)).rejects.toMatchObject({ code: 'insufficient_quantity' })
  })

  test('a refund that leaves nothing of a queued order cancels it, and a partial one does not', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 2 })
    shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
    await line(shop, id, 1)
    expect(shop.commands.splice(0)).toMatchObject([{ body: { name: 'reduce_order' } }])
    expect((await shop.order(id)).processing_status).toBe(S.QUEUED)
    expect(await line(shop, id, 1)).toMatchObject({ paymentStatus: 'refunded', amount: 271 })
    const { uuid } = await shop.order(id)
    expect(shop.commands).toMatchObject([{ body: { name: 'cancel_order', order_id: uuid } }])
    expect(await shop.order(id)).toMatchObject({ processing_status: S.CANCELLED, payment_status: 'refunded' })
  })

  test('a refund of a line that the hub has not started first asks the hub to leave its units on the shelf', async () => {
    const shop = await open()
    const { id, uuid } = await shop.paidOrder({ 1: 2, 2: 1 })
    const [first] = await shop.items(id)
    shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
    await line(shop, id, 1)
    const lines = [{ line_id: first!.id, wanted: 1 }]
    expect(shop.commands).toMatchObject([
      { body: { name: 'reduce_order', order_id: uuid, lines }, object: `order-${id}` },
    ])
    expect((await shop.outbox()).map(({ kind }) => kind)).toEqual(['order.queued'])
    const { orders } = await shop.context.db.transact((tx) => hubSnapshot(tx, shop.context, 1))
    expect(orders[0]!.lines).toMatchObject([{ wanted: 1 }, { wanted: 1 }])
  })

  test.each(['offline', 'timeout'] as const)(
    'a refund is made if the hub cannot be asked (%s), and the hub is informed by its stream',
    async (kind) => {
      const shop = await open()
      const { id, uuid } = await shop.paidOrder({ 1: 2, 2: 1 })
      const [first] = await shop.items(id)
      shop.answer({ kind, commandId: 'c' })
      expect(await line(shop, id, 1)).toMatchObject({ paymentStatus: 'partially_refunded', amount: 270 })
      const lines = [{ line_id: first!.id, wanted: 1 }]
      expect((await shop.outbox()).at(-1)).toEqual({ kind: 'order.reduce', order_id: uuid, lines })
      // The unit on the shelf is not refunded a second time.
      const progress = droppedLines(await shop.items(id), { units: 1 })
      await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines: progress })
      expect(await shop.refunds(id)).toHaveLength(1)
      // Units in a bin cannot be left on the shelf: the hub is not asked.
      await line(shop, id, 2)
      expect(shop.commands).toHaveLength(1)
    },
  )

  test('a refund increases the order’s version, with or without another status', async () => {
    const shop = await open()
    const id = await preparing(shop)
    const versions = [(await shop.order(id)).version]
    for (const refund of [() => whole(shop, id, 10), () => line(shop, id, 1), () => line(shop, id, 2)]) {
      await refund()
      const { version, payment_status } = await shop.order(id)
      expect(payment_status).toBe('partially_refunded')
      versions.push(version)
    }
    expect(new Set(versions).size).toBe(4)
    expect(versions).toEqual(versions.toSorted((a, b) => a - b))
  })

  test('a refund is in the owner’s audit log, with the line and the units', async () => {
    const shop = await open()
    const id = await preparing(shop)
    await line(shop, id, 2, 2)
    const [record] = await shop.context.db.kysely.selectFrom('audit_log').selectAll().execute()
    expect(record).toMatchObject({ actor: 'owner', action: 'orders.refund_item', result: 'succeeded' })
    expect(JSON.parse(record!.detail)).toMatchObject({ amount: 387, quantity: 2, reason: 'customer' })
  })
})

onEachProcessor('a full refund before picking', (open) => {
  test.for([{ kind: 'offline' }, { kind: 'timeout', commandId: 'c' }] as const)(
    'a full refund before picking ends the order if the hub cannot be asked ($kind), and tells the hub not to start',
    async (outcome) => {
      const shop = await open()
      const { id } = await shop.paidOrder({ 1: 2 })
      shop.answer(outcome)
      expect(await whole(shop, id)).toBe('refunded')
      expect((await shop.order(id)).processing_status).toBe(S.CANCELLED)
      expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
      const { uuid } = await shop.order(id)
      expect(await shop.outbox()).toMatchObject([
        { kind: 'order.queued' },
        { kind: 'order.cancel', order_id: uuid },
      ])
      await shop.report({ kind: 'order.cancelled', order_id: id })
      expect(await shop.refunds(id)).toMatchObject([
        { reason: 'cancelled', status: 'succeeded', actor: 'owner' },
      ])
    },
  )

  test('a full refund of a started order cancels nothing, and undropped units stay on the shelf', async () => {
    const shop = await open()
    const { id, uuid } = await shop.paidOrder({ 1: 2, 2: 1 })
    shop.answer({ kind: 'refused', commandId: 'c', reason: 'too_late', data: null })
    expect(await whole(shop, id)).toBe('refunded')
    expect((await shop.order(id)).processing_status).toBe(S.QUEUED)
    const lines = (await shop.items(id)).map((item) => ({ line_id: item.id, wanted: 0 }))
    expect(shop.commands.map(({ body }) => body)).toMatchObject([
      { name: 'cancel_order' },
      { name: 'reduce_order', order_id: uuid, lines },
    ])
    expect((await shop.outbox()).at(-1)).toEqual({ kind: 'order.reduce', order_id: uuid, lines })
  })

  test('a full refund during preparation leaves undropped units on the shelf, and a refund of an amount does not', async () => {
    const shop = await open()
    const { id, uuid } = await shop.paidOrder({ 1: 2, 2: 1 })
    await shop.report({ kind: 'order.preparing', order_id: id, bins: [1] })
    shop.answer({ kind: 'executed', commandId: 'c', data: {}, durationMs: 5 })
    await whole(shop, id, 100)
    expect(shop.commands).toEqual([])
    expect(await whole(shop, id)).toBe('refunded')
    const items = await shop.items(id)
    const lines = items.map((item) => ({ line_id: item.id, wanted: 0 }))
    expect(shop.commands).toMatchObject([{ body: { name: 'reduce_order', order_id: uuid, lines } }])
    expect((await shop.outbox()).map(({ kind }) => kind)).toEqual(['order.queued'])
    // A started unit still drops; units on the shelf can be sold again, and no money is refunded twice.
    const progress = droppedLines(items, { units: 1 })
    await shop.report({ kind: 'order.ready', order_id: id, bins: [1], lines: progress })
    expect((await shop.refunds(id)).map(({ amount }) => amount).reduce((a, b) => a + b)).toBe(
      (await shop.order(id)).total,
    )
  })

  test('a full refund is one refund of the owner if the hub reports the cancellation before its answer', async () => {
    const shop = await open()
    const { id } = await shop.paidOrder({ 1: 2 })
    const { commands } = shop.services
    const quick = {
      ...shop.services,
      commands: {
        async send(request: Parameters<typeof commands.send>[0]) {
          await shop.report({ kind: 'order.cancelled', order_id: id })
          await shop.work.drain()
          void request
          return { kind: 'executed', commandId: 'c', data: {}, durationMs: 5 } as const
        },
      },
    }
    expect(await refundOrder(quick, { orderId: id, ...who })).toBe('refunded')
    expect(await shop.refunds(id)).toMatchObject([
      { reason: 'cancelled', status: 'succeeded', actor: 'owner' },
    ])
    const records = await shop.context.db.kysely.selectFrom('audit_log').selectAll().execute()
    expect(records).toMatchObject([{ actor: 'owner', action: 'orders.refund', result: 'succeeded' }])
  })
})
