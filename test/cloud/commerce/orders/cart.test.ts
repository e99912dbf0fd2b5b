import { expect, test } from 'vitest'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import type { CommandOutcome } from '../../../../cloud/gateway/commands.ts'
import { createOrder, setItem } from '../../../../cloud/commerce/orders/cart.ts'
import { orderHistory } from '../../../../cloud/commerce/orders/order-list.ts'
import { deleteOrder } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { pay } from '../../../../cloud/commerce/payments/pay.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { healthy } from '../../../world/health.ts'

onEachDatabase('a cart', (open) => {
  test('a user has one active order per hub, for any number of simultaneous requests', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const asked = await Promise.all([1, 2, 3, 4].map(() => createOrder(shop.context, { userId, hubId: 1 })))
    expect(new Set(asked.map(({ id }) => id)).size).toBe(1)
    const other = await createOrder(shop.context, { userId: await shop.customer(), hubId: 1 })
    expect(other.id).not.toBe(asked[0]!.id)
    await expect(createOrder(shop.context, { userId, hubId: 9 })).rejects.toMatchObject({
      code: 'hub_not_found',
    })
  })

  test('no cart is created at a hub that takes no orders, and the reason is returned', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const refusal = async (): Promise<unknown> =>
      createOrder(shop.context, { userId, hubId: 1 }).catch((error: unknown) => error)
    await shop.hear({ accepting_orders: false })
    expect(await refusal()).toMatchObject({
      code: 'hub_not_accepting_orders',
      details: { reason: 'hub_not_ready' },
    })
    await shop.hear({ accepting_orders: true })
    const stalled = (stored: object | null) =>
      shop.context.db.kysely
        .updateTable('hub_sessions')
        .set({ stalled: stored && JSON.stringify(stored) })
        .execute()
    await stalled({ ledger: { error: 'no such column', since: 1 } })
    expect(await refusal()).toMatchObject({
      code: 'hub_not_accepting_orders',
      details: { reason: 'stream_stalled' },
    })
    // Missing temperatures stop no sale.
    await stalled({ telemetry: { error: 'no such column', since: 1 } })
    const other = await shop.customer()
    expect(await createOrder(shop.context, { userId: other, hubId: 1 })).toMatchObject({ hub_id: 1 })
    await stalled(null)
    await shop.hear()
    shop.clock.advance(91_000)
    expect(await refusal()).toMatchObject({ details: { reason: 'hub_offline' } })
    await shop.hear()
    const hubs = shop.context.db.kysely.updateTable('hubs')
    await hubs.set({ accepting_orders: 0 }).execute()
    expect(await refusal()).toMatchObject({ details: { reason: 'orders_stopped' } })
    await hubs.set({ hub_status: 'maintenance' }).execute()
    expect(await refusal()).toMatchObject({ details: { reason: 'hub_inactive' } })
  })

  test('an order has at most 1,000 units of a product, for any stock', async () => {
    const shop = await openShop(await open(), { products: [{ price: 1, quantity: 5000 }] })
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1000 })
    const tooMany = { productId: 1, quantity: Number.MAX_SAFE_INTEGER }
    await expect(setItem(shop.context, { userId, orderId, hubId: 1 }, tooMany)).rejects.toMatchObject({
      code: 'insufficient_stock',
      details: { items: [{ product_id: 1, available: 1000 }] },
    })
  })

  test('quantities are absolute: 0 removes a line, and too many units or an old version are refused', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId, version } = await shop.cart(userId, { 1: 2, 2: 1 })
    const key = { userId, orderId, hubId: 1 }
    const set = (productId: number, quantity: number, seen?: number) =>
      setItem(shop.context, key, { productId, quantity, version: seen })
    await set(1, 4, version)
    expect((await shop.items(orderId)).map(({ qty }) => qty)).toEqual([4, 1])
    await set(2, 0)
    await set(2, 0)
    expect((await shop.items(orderId)).map(({ product_id }) => product_id)).toEqual([1])
    await expect(set(1, 6)).rejects.toMatchObject({
      code: 'insufficient_stock',
      details: { items: [{ product_id: 1, requested: 6, available: 5 }] },
    })
    await expect(set(1, 1, version)).rejects.toMatchObject({ code: 'order_state_conflict' })
    await expect(set(99, 1)).rejects.toMatchObject({ code: 'product_not_found' })
    const stranger = { userId: await shop.customer(), orderId }
    await expect(setItem(shop.context, stranger, { productId: 1, quantity: 1 })).rejects.toMatchObject({
      code: 'order_not_found',
    })
    const elsewhere = { ...key, hubId: 2 }
    await expect(setItem(shop.context, elsewhere, { productId: 1, quantity: 1 })).rejects.toMatchObject({
      code: 'order_not_found',
    })
  })

  test('a cart shows the prices that the payment will freeze, and a changed price is not charged unseen', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1, 2: 2 })
    const read = () => shop.view(orderId)
    expect(await read()).toMatchObject({
      total_price_original: 648,
      total_price_discounted: 608,
      discount_total: 40,
      tax_total: 51,
      total: 659,
      processing_status_name: 'NEW',
      items: [{ price: 250 }, { price: 179, unit_price_original: 199, line_total: 358 }],
    })
    await shop.context.db.kysely
      .updateTable('products')
      .set({ original_price: 300 })
      .where('id', '=', 1)
      .execute()
    const setStock = (quantity: number) =>
      shop.context.db.kysely.updateTable('products').set({ quantity }).where('id', '=', 2).execute()
    await setStock(1)
    // A shortage is reported before a changed total.
    await expect(
      pay(shop.services, { userId, orderId, method: 'pm_card_visa', expectedTotal: 659 }),
    ).rejects.toMatchObject({ code: 'insufficient_stock' })
    await setStock(9)
    await expect(
      pay(shop.services, { userId, orderId, method: 'pm_card_visa', expectedTotal: 659 }),
    ).rejects.toMatchObject({ code: 'total_changed', details: { total: 713 } })
    await pay(shop.services, { userId, orderId, method: 'pm_card_visa', expectedTotal: 713 })
    await shop.context.db.kysely.updateTable('products').set({ original_price: 900 }).execute()
    expect(await read()).toMatchObject({ total: 713, queue_position: 1, expires_at: null })
    await expect(
      setItem(shop.context, { userId, orderId }, { productId: 1, quantity: 1 }),
    ).rejects.toMatchObject({ code: 'order_not_editable' })
  })

  test('an empty cart, and a cart that no bin can serve, cannot be paid', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, {})
    const paying = () => pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
    await expect(paying()).rejects.toMatchObject({ code: 'cart_empty' })
    await shop.cart(userId, { 1: 1 })
    await shop.hear({ bins: healthy.bins.map((bin) => ({ ...bin, status: 'fault' as const })) })
    await expect(paying()).rejects.toMatchObject({ code: 'no_bin_available' })
    await expect(pay(shop.services, { userId, orderId, method: 'pm_nobody' })).rejects.toMatchObject({
      code: 'payment_method_not_found',
    })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  test('an abandoned cart expires and is deleted a day later, and its id is never used again', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id } = await shop.cart(userId, { 1: 1 })
    shop.clock.advance(30 * 60_000 - 1)
    await shop.work.drain()
    expect((await shop.order(id)).processing_status).toBe(S.NEW)
    shop.clock.advance(1)
    expect(await shop.work.drain(['order.idle'])).toEqual([id])
    shop.clock.advance(24 * 3_600_000)
    await shop.work.drain()
    await expect(shop.order(id)).rejects.toThrow()
    await shop.hear()
    expect((await shop.cart(userId, { 1: 1 })).id).toBeGreaterThan(id)
  })

  test('a cart that expires in a repeated transaction is published once', async () => {
    let commits = Infinity
    const db = await open({
      checkpoint: (point) => {
        if (point === 'db.before-commit' && commits-- === 0)
          throw Object.assign(new Error('deadlock'), { code: '40P01' })
      },
    })
    const shop = await openShop(db)
    const { id } = await shop.cart(await shop.customer(), { 1: 1 })
    shop.clock.advance(30 * 60_000)
    commits = 0
    expect(await shop.work.drain(['order.idle'])).toEqual([id])
  })

  test('the last unit is sold once to 50 simultaneous payers', async () => {
    const shop = await openShop(await open(), { products: [{ price: 100, quantity: 1 }] })
    const carts = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const userId = await shop.customer()
        return { userId, orderId: (await shop.cart(userId, { 1: 1 })).id }
      }),
    )
    const results = await Promise.allSettled(
      carts.map((cart) => pay(shop.services, { ...cart, method: 'pm_card_visa' })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'insufficient_stock' })
    expect(await shop.product(1)).toEqual({ quantity: 1, reserved: 1 })
    const charged = await shop.context.db.kysely.selectFrom('payments').select('status').execute()
    expect(charged).toEqual([{ status: 'completed' }])
    expect(await shop.outbox()).toHaveLength(1)
    expect(await shop.context.db.kysely.selectFrom('sandbox_intents').selectAll().execute()).toHaveLength(1)
  })

  test('a cart that is paid twice simultaneously is paid once', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const { id: orderId } = await shop.cart(userId, { 1: 1 })
    const paying = () => pay(shop.services, { userId, orderId, method: 'pm_card_visa' })
    await Promise.allSettled([paying(), paying(), paying()])
    expect((await shop.payments(orderId)).map(({ status }) => status)).toEqual(['completed'])
    expect(await shop.outbox()).toHaveLength(1)
  })
})

onEachDatabase('deleting an order', (open) => {
  const drop = (shop: Shop, order: { id: number; user_id: number }) =>
    deleteOrder(shop.services, { orderId: order.id, userId: order.user_id }, 'user')

  test('the deletion of an order removes a cart, also a cart that waits for its cardholder', async () => {
    const shop = await openShop(await open())
    const userId = await shop.customer()
    const cart = await shop.cart(userId, { 1: 1 })
    expect(await drop(shop, cart)).toBe('deleted')
    await expect(drop(shop, cart)).rejects.toMatchObject({ code: 'order_not_found' })
    const waiting = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: waiting.id, method: 'pm_card_authenticationRequired' })
    expect(await drop(shop, waiting)).toBe('deleted')
    expect(await shop.order(waiting.id)).toMatchObject({
      processing_status: S.CANCELLED,
      payment_status: 'canceled',
    })
    expect(await shop.product(1)).toEqual({ quantity: 5, reserved: 0 })
  })

  test('an order is not deleted if the processor does not cancel its payment, or does not answer', async () => {
    let isAway = false
    const shop = await openShop(await open(), {
      wrapProcessor: (real) => ({
        ...real,
        cancelIntent: async (ref) => {
          if (isAway) throw new ProcessorUnavailable('nobody answers')
          return { ...(await real.readIntent(ref)), status: 'processing' }
        },
      }),
    })
    const userId = await shop.customer()
    const cart = await shop.cart(userId, { 1: 1 })
    await pay(shop.services, { userId, orderId: cart.id, method: 'pm_card_authenticationRequired' })
    await expect(drop(shop, cart)).rejects.toMatchObject({ code: 'order_state_conflict' })
    isAway = true
    await expect(drop(shop, cart)).rejects.toMatchObject({ code: 'processor_unavailable' })
    expect((await shop.order(cart.id)).processing_status).toBe(S.PENDING_PAYMENT)
  })

  const answers: Record<string, CommandOutcome> = {
    agrees: { kind: 'executed', commandId: 'c', data: {}, durationMs: 1 },
    'is offline': { kind: 'offline' },
    'is silent': { kind: 'timeout', commandId: 'c' },
    'does not know the order yet': { kind: 'refused', commandId: 'c', reason: 'not_found', data: null },
    'has another connection by now': { kind: 'refused', commandId: 'c', reason: 'stale_session', data: null },
    'failed over it': { kind: 'failed', commandId: 'c', reason: 'fault', data: null },
  }
  test.each(Object.keys(answers))(
    'the deletion of a paid order cancels and refunds it if its hub %s, and the hub never starts it',
    async (name) => {
      const shop = await openShop(await open())
      const order = await shop.paidOrder({ 1: 1 })
      shop.answer(answers[name]!)
      expect(await drop(shop, order)).toBe('cancelled')
      expect(await shop.order(order.id)).toMatchObject({
        processing_status: S.CANCELLED,
        payment_status: 'refunded',
      })
      expect(await shop.product(1)).toMatchObject({ reserved: 0 })
      const told = (await shop.outbox()).map(({ kind }) => kind)
      expect(told).toEqual(name === 'agrees' ? ['order.queued'] : ['order.queued', 'order.cancel'])
      await expect(drop(shop, order)).rejects.toMatchObject({ code: 'order_not_deletable' })
    },
  )

  test('the deletion of an order is refused if the hub has started it, whichever way the cloud learns of it', async () => {
    const shop = await openShop(await open())
    const order = await shop.paidOrder({ 1: 1 })
    shop.answer({ kind: 'refused', commandId: 'c', reason: 'too_late', data: null })
    await expect(drop(shop, order)).rejects.toMatchObject({ code: 'order_state_conflict' })
    expect((await shop.order(order.id)).processing_status).toBe(S.QUEUED)
    // The report comes while the hub is asked.
    shop.services.commands.send = async () => {
      await shop.report({ kind: 'order.preparing', order_id: order.id, bins: [1] })
      return { kind: 'timeout', commandId: 'c' }
    }
    await expect(drop(shop, order)).rejects.toMatchObject({ code: 'order_state_conflict' })
    expect(await shop.refunds(order.id)).toEqual([])
    await expect(drop(shop, order)).rejects.toMatchObject({ code: 'order_not_deletable' })
  })

  test('a cancellation that the hub reports before its answer is booked once', async () => {
    const shop = await openShop(await open())
    const order = await shop.paidOrder({ 1: 1 })
    shop.services.commands.send = async () => {
      await shop.report({ kind: 'order.cancelled', order_id: order.id })
      return { kind: 'executed', commandId: 'c', data: {}, durationMs: 1 }
    }
    expect(await drop(shop, order)).toBe('cancelled')
    await shop.work.drain()
    expect(await shop.refunds(order.id)).toMatchObject([{ status: 'succeeded' }])
  })
})

onEachDatabase('the order history', (open) => {
  test('the order history has pages from the newest to the oldest, each order once, and refuses an invalid cursor', async () => {
    const shop = await openShop(await open(), { products: [{ price: 100, quantity: 50 }], bins: 7 })
    const ids: number[] = []
    for (let i = 0; i < 7; i += 1) ids.push((await shop.paidOrder({ 1: 1 })).id)
    await shop.cart(await shop.customer(), { 1: 1 })
    const seen: number[] = []
    let cursor: number | null = null
    do {
      const wanted = { hubId: 1, ownerId: 1, limit: 3, cursor, search: null, searchNames: 10 }
      const page = (await orderHistory(shop.context.db.kysely, wanted)).read() as {
        data: { id: number }[]
        has_more: boolean
        next_cursor: number | null
      }
      seen.push(...page.data.map(({ id }) => id))
      expect(page.has_more).toBe(page.next_cursor !== null)
      cursor = page.next_cursor
    } while (cursor !== null)
    expect(seen).toEqual(ids.toReversed())
    const strange = orderHistory(shop.context.db.kysely, {
      hubId: 2,
      ownerId: 2,
      limit: 3,
      cursor: ids[0]!,
      search: null,
      searchNames: 10,
    })
    await expect(strange).rejects.toMatchObject({ code: 'invalid_cursor' })
  })

  test('the order history finds an exact id, a part of a name in any case, and the start of a UPC', async () => {
    const shop = await openShop(await open())
    const first = await shop.paidOrder({ 1: 1 })
    const second = await shop.paidOrder({ 2: 1 })
    const find = async (search: string) => {
      const page = await orderHistory(shop.context.db.kysely, {
        hubId: 1,
        ownerId: 1,
        limit: 20,
        cursor: null,
        search,
        searchNames: 10,
      })
      return page.read().data.map(({ id }) => id)
    }
    expect(await find('product 2')).toEqual([second.id])
    expect(await find('PRODUCT')).toEqual([second.id, first.id])
    expect(await find('000000000001')).toEqual([first.id])
    expect(await find(String(second.id))).toContain(second.id)
    expect(await find('%')).toEqual([])
    await shop.context.db.kysely
      .updateTable('products')
      .set({ name: 'CRÈME Brûlée' })
      .where('id', '=', 1)
      .execute()
    const third = await shop.paidOrder({ 1: 1 })
    for (const word of ['crème', 'CRÈME', 'creme', 'brulee']) expect(await find(word)).toEqual([third.id])
  })
})
