import { z } from 'zod'
import { expect, test } from 'vitest'
import { productHandlers } from '../../../../cloud/commerce/catalogue/products.ts'
import type { Handlers } from '../../../../cloud/platform/http/handler.ts'
import { orderHandlers, ownerOrderHandlers } from '../../../../cloud/commerce/orders/handlers.ts'
import { cancellationHandlers } from '../../../../cloud/commerce/fulfilment/delete-order.ts'
import { refundHandlers } from '../../../../cloud/commerce/refunds/handlers.ts'
import { paymentHandlers } from '../../../../cloud/commerce/payments/handlers.ts'
import { ProcessorUnavailable } from '../../../../cloud/commerce/processors/processor.ts'
import { openDatabase } from '../../../../cloud/platform/store/database.ts'
import type { RouteId } from '../../../../protocol/contract/routes.ts'
import { openCloud } from '../../../world/cloud.ts'
import { emptySqlite } from '../../../world/database.ts'
import { testMedia } from '../../support/media.ts'
import { openShop, type Shop, type ShopOptions } from '../../../world/shop.ts'

const SECRET = 'whsec'
const Order = z.object({ order_id: z.int() })

/** Shop and HTTP interface on one database; every answer is checked against the route's schema. */
async function shopOverHttp(options: ShopOptions = {}) {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  let shop: Shop | undefined
  const context = { db, runtime: {}, settings: {} }
  const handlersOf = ({ services, context }: Shop) => ({
    ...orderHandlers(context, testMedia(context), () => services.processor.leastAmount('USD')),
    ...cancellationHandlers(services),
    ...refundHandlers(services),
    ...ownerOrderHandlers(context, testMedia(context)),
    ...paymentHandlers(services, SECRET),
    ...productHandlers(context, testMedia(context), 'http://larder.test'),
  })
  // The interface creates the hub, and the shop its products; the handlers need both.
  const late = new Proxy<Partial<Handlers<RouteId>>>(
    {},
    {
      ownKeys: () => Object.keys(handlersOf({ context, services: { context } } as Shop)),
      getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
      get: (_, id: RouteId) => (input: never) =>
        (handlersOf(shop!) as Record<string, (input: never) => unknown>)[id]!(input),
    },
  )
  const http = await openCloud({ db, handlers: late })
  shop = await openShop(db, options)
  const token = await http.issuer.token({ sub: 'ada', anonymous: true })
  await http.call('POST', '/users/user/bootstrap/guest', { token })
  return { ...http, shop, token }
}

test('the reason why an order cannot be paid is available before the payment', async () => {
  const { call, token, shop } = await shopOverHttp()
  const { order_id: id } = Order.parse((await call('POST', '/users/1/orders?hub_id=1', { token })).json)
  await shop.hear({ accepting_orders: false })
  expect(await call('GET', `/users/1/orders/${id}/checkout-available?hub_id=1`, { token })).toMatchObject({
    json: { available: false, reasons: ['cart_empty', 'hub_not_accepting_orders'] },
  })
})

test('a total that no card can pay is reported before the payment, with the code of the payment', async () => {
  const { call, token, shop } = await shopOverHttp({ products: [{ price: 45, quantity: 5 }] })
  const { id } = await shop.cart(1, { 1: 1 })
  expect(await call('GET', `/users/1/orders/${id}/checkout-available?hub_id=1`, { token })).toMatchObject({
    json: { available: false, reasons: ['amount_too_small'], total: 45 },
  })
  const body = { order_id: id, payment_method_id: 'pm_card_visa' }
  expect(await call('POST', '/users/payments/pay', { token, body })).toMatchObject({
    status: 422,
    json: { error: { code: 'amount_too_small', details: { total: 45, least: 50 } } },
  })
})

test('an owner reads and refunds orders of the owner’s hubs, and another owner’s orders are not found', async () => {
  const { call, key, shop } = await shopOverHttp()
  const { id } = await shop.paidOrder({ 1: 2 })
  const scopes = ['orders:read', 'orders:write'] as const
  const mine = await key([...scopes])
  const theirs = await key([...scopes], { ownerId: 2 })
  expect(
    await call('GET', '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1', { key: mine }),
  ).toMatchObject({
    status: 200,
    json: {
      data: [{ id, total_price_original: 500, payment_status: 'completed' }],
      next_cursor: null,
      has_more: false,
    },
  })
  const refund = `/api/v1/owners/orders/${id}/refund`
  expect(await call('POST', refund, { key: theirs })).toMatchObject({
    status: 404,
    json: { error: { code: 'order_not_found' } },
  })
  const tooMuch = { amount: 501, destination: 'Bank Account' }
  expect(await call('POST', refund, { key: mine, body: tooMuch })).toMatchObject({
    status: 422,
    json: { error: { code: 'invalid_amount', details: { remaining: 500 } } },
  })
  expect(await call('POST', refund, { key: mine, body: { amount: 100 } })).toMatchObject({
    status: 200,
    json: { success: true, order_id: id, new_status: 'partially_refunded' },
  })
  expect(await call('POST', refund, { key: mine })).toMatchObject({ json: { new_status: 'refunded' } })
  expect(await call('POST', refund, { key: mine })).toMatchObject({
    status: 409,
    json: { error: { code: 'already_refunded' } },
  })
  const audit = await shop.context.db.kysely.selectFrom('audit_log').selectAll().execute()
  expect(audit.map(({ action, hub_id, result }) => ({ action, hub_id, result }))).toEqual(
    Array.from({ length: 2 }, () => ({ action: 'orders.refund', hub_id: 1, result: 'succeeded' })),
  )
})

test('a repeated refund without an answer of the processor continues under its key, and another key is another refund', async () => {
  let isDown = true
  const { call, key, shop } = await shopOverHttp({
    wrapProcessor: (sandbox) => ({
      ...sandbox,
      createRefund: (request) =>
        isDown ? Promise.reject(new ProcessorUnavailable('no connection')) : sandbox.createRefund(request),
    }),
  })
  const { id } = await shop.paidOrder({ 1: 2 })
  const mine = await key(['orders:write'])
  const ask = async (amount: number) => {
    const headers = { 'Idempotency-Key': 'k' }
    const path = `/api/v1/owners/orders/${id}/refund`
    return (await call('POST', path, { key: mine, headers, body: { amount } })).status
  }
  expect(await ask(100)).toBe(503)
  isDown = false
  expect(await ask(200)).toBe(200)
  expect(await shop.refunds(id)).toMatchObject([
    { amount: 100, status: 'pending' },
    { amount: 200, status: 'succeeded' },
  ])
})

test('products can be searched by category and part of the name, in pages with links to the others', async () => {
  const { call } = await shopOverHttp({
    products: Array.from({ length: 12 }, (_, index) => ({ price: 100 + index, quantity: index })),
  })
  const page = await call('GET', '/api/v1/hubs/1/products?size=5&page=2&category_id=1')
  expect(page.headers.get('X-Total-Count')).toBe('12')
  expect(page.headers.get('Link')).toBe(
    [
      '</api/v1/hubs/1/products?size=5&page=1&category_id=1>; rel="first"',
      '</api/v1/hubs/1/products?size=5&page=1&category_id=1>; rel="prev"',
      '</api/v1/hubs/1/products?size=5&page=3&category_id=1>; rel="next"',
      '</api/v1/hubs/1/products?size=5&page=3&category_id=1>; rel="last"',
    ].join(', '),
  )
  expect(page.json).toHaveLength(5)
  expect((await call('GET', '/hubs/1/products?product_name=UCT%201')).json).toHaveLength(4)
  expect((await call('GET', '/hubs/1/products?product_name=%25')).json).toEqual([])
  expect((await call('GET', '/hubs/1/products?subcategory_id=1')).json).toEqual([])
  expect((await call('GET', '/hubs/2/products')).json).toEqual([])
  expect(await call('GET', '/hubs/9/products')).toMatchObject({
    status: 404,
    json: { error: { code: 'hub_not_found' } },
  })
  const one = await call('GET', '/hubs/1/products/1')
  expect(one).toMatchObject({
    status: 200,
    json: { id: 1, quantity: 0, in_stock: false, category: 'Drinks' },
  })
  expect(one.json).not.toHaveProperty('purchase_price')
  expect(await call('GET', '/hubs/2/products/1')).toMatchObject({
    status: 404,
    json: { error: { code: 'product_not_found' } },
  })
})
