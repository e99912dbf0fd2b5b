import { expect, test } from 'vitest'
import { errorOf } from '../world/cloud.ts'
import { onEachDatabase } from '../world/database.ts'
import { drop } from '../world/shop.ts'
import { openService } from '../world/service.ts'

const bootstrap = '/users/user/bootstrap'
const orders = '/users/1/orders'

/** Every answer is checked by its schema: an answer that breaks the contract would be a 500. */
onEachDatabase('the service over HTTP', (open) => {
  test('an order goes from the cart to COMPLETED', async () => {
    const { customer, owner, shop } = await openService(open)
    expect((await customer('ada', 'POST', bootstrap)).status).toBe(201)
    const products = await customer('ada', 'GET', '/hubs/1/products?size=1')
    expect([products.status, products.headers.get('X-Total-Count')]).toEqual([200, '2'])
    expect((await customer('ada', 'GET', '/hubs/1/products/2')).json).toMatchObject({ discounted_price: 179 })

    const created = await customer('ada', 'POST', `${orders}?hub_id=1`)
    expect(created.json).toMatchObject({
      order_id: 1,
      processing_status: 0,
      payment_status: 'unpaid',
      items: [],
    })
    expect((await customer('ada', 'POST', `${orders}?hub_id=1`)).json).toMatchObject({ order_id: 1 })
    const item = { product_id: 1, quantity: 2 }
    const cart = await customer('ada', 'PUT', `${orders}/1/order_item?hub_id=1`, item)
    expect(cart.json).toMatchObject({ items: [{ product_id: 1, qty: 2, line_total: 500 }], total: 541 })
    const check = await customer('ada', 'GET', `${orders}/1/checkout-available?hub_id=1`)
    expect(check.json).toEqual({ available: true, reasons: [], total: 541 })

    const payment = { order_id: 1, payment_method_id: 'pm_card_visa', expected_total: 541 }
    const paid = await customer('ada', 'POST', '/users/payments/pay', payment)
    expect(paid.json).toMatchObject({ status: 'succeeded', processing_status: 20, amount: 541 })
    const queue = await customer('ada', 'GET', `${orders}/1/queue-position?hub_id=1`)
    expect(queue.json).toMatchObject({ order_id: 1, position: 1, ahead: 0, processing_status: 20 })

    const [line] = await shop.items(1)
    await shop.report({ kind: 'order.preparing', order_id: 1, bins: [2] })
    await shop.report(drop(line!, 1, 4), drop(line!, 2, 3))
    const lines = [{ line_id: line!.id, dropped: 2, doubtful: 0, bins: [2] }]
    await shop.report({ kind: 'order.ready', order_id: 1, bins: [2], lines })
    const ready = await customer('ada', 'GET', `${orders}/1?hub_id=1`)
    expect(ready.json).toMatchObject({
      processing_status_name: 'READY',
      bins: [2],
      items: [{ dropped: true, qty_dropped: 2, bin_number: 2 }],
    })
    await shop.report({ kind: 'order.collecting', order_id: 1 }, { kind: 'order.completed', order_id: 1 })

    const history = await owner('GET', 'hubs/all_orders_paginated/?hub_id=1')
    expect(history.json).toMatchObject({
      data: [
        { id: 1, processing_status: 60, payment_status: 'completed', order_items: [{ qty_dropped: 2 }] },
      ],
      next_cursor: null,
      has_more: false,
    })
    expect((await owner('GET', 'hub_inventory/?hub_id=1')).json).toMatchObject([
      { id: 1, quantity: 3 },
      { id: 2 },
    ])
    expect((await owner('POST', 'orders/1/refund', { amount: 41 })).json).toEqual({
      success: true,
      order_id: 1,
      new_status: 'partially_refunded',
    })
    expect((await owner('POST', 'orders/1/refund')).json).toMatchObject({ new_status: 'refunded' })
    expect(errorOf(await owner('POST', 'orders/1/refund')).error.code).toBe('already_refunded')
  })

  test('a command to a disconnected hub fails at once, but its last known state is returned', async () => {
    const { owner, customer, shop } = await openService(open)
    for (const name of ['open_bin', 'close_bin', 'raise_bin', 'lower_bin']) {
      const answer = await owner('POST', `controls/${name}?bin=1&hub=1`)
      expect([answer.status, errorOf(answer).error]).toEqual([
        502,
        expect.objectContaining({
          code: 'hardware_error',
          details: expect.objectContaining({ reason: 'offline' }) as object,
        }),
      ])
    }
    const status = await owner('GET', 'controls/get_bin_status?bin=1&hub=1')
    expect(status.json).toMatchObject({
      result: { status_code: 200, response_data: { bin_number: 1, status: 'offline' } },
    })
    expect((await owner('GET', 'hubs/get_hub_health/?hub_id=1')).json).toMatchObject({
      hub_id: 1,
      online: true,
      network_status: 'degraded',
      bins: [{ bin_number: 1, enabled: true, status: 'healthy' }, {}, {}, {}],
    })
    shop.clock.advance(120_000)
    expect((await owner('GET', 'hubs/get_hub_health/?hub_id=1')).json).toMatchObject({
      online: false,
      network_status: 'disconnected',
      bins: [{ status: 'offline' }, {}, {}, {}],
    })
    await customer('ada', 'POST', bootstrap)
    const refused = await customer('ada', 'POST', `${orders}?hub_id=1`)
    expect([refused.status, errorOf(refused).error.code]).toEqual([409, 'hub_not_accepting_orders'])
  })

  test('the routes of the embedded issuer do not exist and are not documented without it', async () => {
    const { send } = await openService(open)
    const json = { 'Content-Type': 'application/json' }
    const token = await send('POST', '/demo/identity/token', json, '{"sub":"ada"}')
    expect([token.status, errorOf(token).error.code]).toEqual([404, 'route_not_found'])
    const document = await send('GET', '/openapi.json', {})
    expect(JSON.stringify(document.json)).not.toContain('/demo/')
  })
})
