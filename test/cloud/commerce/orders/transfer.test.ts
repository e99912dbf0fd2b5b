import { expect, test } from 'vitest'
import { applyReward } from '../../../../cloud/commerce/deals/preview-cart.ts'
import { OrderStatus as S } from '../../../../protocol/model/order-status.ts'
import { errorOf } from '../../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../../world/database.ts'
import { openService } from '../../../world/service.ts'
import { addDeal, redemptionsOf } from '../deals/support/shop-deals.ts'

const path = '/users/user/transfer-anon-order'

interface Line {
  product_id: number
  qty: number
}
interface Taken {
  order: { order_id: number; user_id: number; items: Line[] }
  merged: boolean
  source_order_id: number
}

async function shopWithGuest(open: OpenDatabase) {
  const service = await openService(open)
  const { customer, tokenOf, shop } = service
  await customer('ada', 'POST', '/users/user/bootstrap')
  await customer('guest-1', 'POST', '/users/user/bootstrap/guest')
  /** A cart at hub 1 with quantities by product. */
  async function cart(name: string, userId: number, quantities: Record<number, number>): Promise<number> {
    const { json } = await customer(name, 'POST', `/users/${userId}/orders?hub_id=1`)
    const { order_id } = json as { order_id: number }
    for (const [id, quantity] of Object.entries(quantities))
      await customer(name, 'PUT', `/users/${userId}/orders/${order_id}/order_item?hub_id=1`, {
        product_id: Number(id),
        quantity,
      })
    return order_id
  }
  return {
    ...service,
    cart,
    pay: (name: string, order_id: number) =>
      customer(name, 'POST', '/users/payments/pay', { order_id, payment_method_id: 'pm_card_visa' }),
    take: async (orderId: number, change: object = {}) =>
      customer('ada', 'POST', path, {
        anonymous_user_id: 2,
        order_id: orderId,
        anonymous_token: await tokenOf('guest-1'),
        ...change,
      }),
    lines: async (orderId: number) =>
      (await shop.items(orderId)).map(({ product_id, qty }) => ({ product_id, qty })),
  }
}

const quantities = ({ order }: Taken) => order.items.map(({ product_id, qty }) => ({ product_id, qty }))

onEachDatabase("a guest's order", (open) => {
  test('a guest’s order is transferred to a user without an order at the hub', async () => {
    const { cart, take, customer, shop } = await shopWithGuest(open)
    const id = await cart('guest-1', 2, { 1: 2 })
    const { status, json } = await take(id)
    expect([status, json]).toEqual([
      200,
      {
        order: expect.objectContaining({ order_id: id, user_id: 1, processing_status: S.NEW }) as object,
        merged: false,
        source_order_id: id,
      },
    ])
    expect((await customer('guest-1', 'GET', `/users/2/orders/${id}?hub_id=1`)).status).toBe(404)
    expect((await customer('ada', 'GET', `/users/1/orders/${id}?hub_id=1`)).status).toBe(200)
    // The guest has no access any more.
    expect((await take(id)).status).toBe(404)
    expect((await shop.order(id)).merged_into).toBeNull()
  })

  test('a transferred order replaces a cart without items', async () => {
    const { cart, take, customer } = await shopWithGuest(open)
    const empty = await cart('ada', 1, {})
    const id = await cart('guest-1', 2, { 1: 2 })
    expect((await take(id)).json).toMatchObject({ order: { order_id: id }, merged: false })
    expect((await customer('ada', 'GET', `/users/1/orders/${empty}?hub_id=1`)).status).toBe(404)
  })

  test('a transferred order is merged into a cart with items, within the stock', async () => {
    const { cart, take, shop, lines, customer } = await shopWithGuest(open)
    // There are five units of product 1 and three of product 2.
    const own = await cart('ada', 1, { 1: 2 })
    const id = await cart('guest-1', 2, { 1: 4, 2: 1 })
    const { status, json } = await take(id)
    expect([status, json]).toMatchObject([
      200,
      { merged: true, source_order_id: id, order: { order_id: own } },
    ])
    expect(quantities(json as Taken)).toEqual([
      { product_id: 1, qty: 5 },
      { product_id: 2, qty: 1 },
    ])
    // The source order stays unchanged, with a link to the target.
    expect(await shop.order(id)).toMatchObject({
      user_id: 2,
      processing_status: S.EXPIRED,
      merged_into: own,
    })
    expect(await lines(id)).toEqual([
      { product_id: 1, qty: 4 },
      { product_id: 2, qty: 1 },
    ])
    expect((await take(id)).status).toBe(404)
    shop.clock.advance(48 * 3_600_000)
    await shop.work.drain(['order.expired'])
    expect((await shop.order(id)).merged_into).toBe(own)
    expect((await customer('ada', 'GET', '/users/1/orders')).json).toMatchObject({ total: 1 })
  })

  test.for([false, true])(
    'a transferred order keeps its announced deal, which is used once (merged: %s)',
    async (isMerged) => {
      const { cart, take, pay, customer, shop } = await shopWithGuest(open)
      const dealId = await addDeal(shop, {
        rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10 }],
        constraints: [{ type: 'MAXUSES', value: '1' }],
      })
      const item = { product_id: 1, category_id: null, subcategory_id: null, quantity: 1, unit_price: 250 }
      const hub = { id: 1, timezone: 'UTC' }
      const request = { hub_id: 1, user_id: 2, device_uuid: null, deal_ids: [dealId], cart_items: [item] }
      await applyReward(shop.context, hub, request)
      const id = await cart('guest-1', 2, { 1: 1 })
      const declined = { order_id: id, payment_method_id: 'pm_card_chargeDeclined' }
      await customer('guest-1', 'POST', '/users/payments/pay', declined)
      const own = isMerged ? await cart('ada', 1, { 2: 1 }) : id
      expect((await take(id)).json).toMatchObject({ merged: isMerged, order: { order_id: own } })
      await pay('ada', own)
      expect((await shop.order(own)).deals).toContain(`"deal_id":${dealId}`)
      expect(await redemptionsOf(shop)).toMatchObject([{ order_id: own, user_id: 1, status: 'completed' }])
    },
  )

  test('a transferred order without sellable units adds nothing', async () => {
    const { cart, take, shop } = await shopWithGuest(open)
    await cart('ada', 1, { 1: 1 })
    const id = await cart('guest-1', 2, { 2: 2 })
    await shop.context.db.kysely.updateTable('products').set({ is_active: 0 }).where('id', '=', 2).execute()
    expect(quantities((await take(id)).json as Taken)).toEqual([{ product_id: 1, qty: 1 }])
  })

  test('the transfer of a missing, paid or pending order is refused with the reason', async () => {
    const { cart, take, pay, customer, shop } = await shopWithGuest(open)
    const refusal = async (orderId: number, change?: object) => {
      const answer = await take(orderId, change)
      return [answer.status, errorOf(answer).error.code]
    }
    expect(await refusal(99)).toEqual([404, 'order_not_found'])
    const own = await cart('ada', 1, { 1: 1 })
    expect(await refusal(own)).toEqual([404, 'order_not_found'])
    await customer('ada', 'DELETE', `/users/1/orders/${own}`)
    expect(await refusal(1, { anonymous_user_id: 99 })).toEqual([404, 'order_not_found'])

    const waiting = await cart('guest-1', 2, { 1: 1 })
    const action = { order_id: waiting, payment_method_id: 'pm_card_authenticationRequired' }
    await customer('guest-1', 'POST', '/users/payments/pay', action)
    expect(await refusal(waiting)).toEqual([409, 'order_not_editable'])
    await customer('guest-1', 'DELETE', `/users/2/orders/${waiting}`)
    expect(await refusal(waiting)).toEqual([409, 'order_not_editable'])

    const paid = await cart('guest-1', 2, { 1: 1 })
    await pay('guest-1', paid)
    expect(await refusal(paid)).toEqual([409, 'order_already_paid'])
    await shop.report({ kind: 'order.failed', order_id: paid, bins: [], lines: [], reason: 'jam' })
    expect(await refusal(paid)).toEqual([409, 'order_already_paid'])
  })

  test('an order is not merged into an order in progress', async () => {
    const { cart, take, pay } = await shopWithGuest(open)
    const own = await cart('ada', 1, { 1: 1 })
    await pay('ada', own)
    const answer = await take(await cart('guest-1', 2, { 1: 1 }))
    expect([answer.status, errorOf(answer).error]).toEqual([
      409,
      expect.objectContaining({ code: 'order_not_editable', details: { order_id: own } }),
    ])
  })

  test('a transfer requires the guest’s token', async () => {
    const { cart, take, tokenOf, customer, issuer, shop } = await shopWithGuest(open)
    const id = await cart('guest-1', 2, { 1: 1 })
    await customer('guest-2', 'POST', '/users/user/bootstrap/guest')
    await customer('eve', 'POST', '/users/user/bootstrap')
    const past = Math.floor(shop.clock.now() / 1000) - 600
    for (const [token, status, code] of [
      [await tokenOf('guest-2'), 403, 'forbidden'],
      [await tokenOf('ada'), 403, 'forbidden'],
      ['a.b.c', 401, 'invalid_token'],
      [await issuer.token({ sub: 'guest-1', anonymous: true, aud: 'elsewhere' }), 401, 'invalid_token'],
      [await issuer.token({ sub: 'guest-1', iat: past - 60, exp: past }), 401, 'token_expired'],
    ] as const) {
      const answer = await take(id, { anonymous_token: token })
      expect([answer.status, errorOf(answer).error.code]).toEqual([status, code])
    }
    // A registered user's cart cannot be transferred, even with that user's token.
    const eves = await cart('eve', 4, { 1: 1 })
    const change = { anonymous_user_id: 4, anonymous_token: await tokenOf('eve') }
    expect((await take(eves, change)).status).toBe(403)
    expect((await shop.order(id)).user_id).toBe(2)
  })

  test('a guest’s order stays if the guest has become the user', async () => {
    const { cart, customer, issuer, send } = await shopWithGuest(open)
    const id = await cart('guest-1', 2, { 1: 1 })
    const token = await issuer.token({ sub: 'guest-1', email: 'one@example.org', email_verified: true })
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    await send('POST', '/users/user/bootstrap', headers, '{}')
    const body = JSON.stringify({ anonymous_user_id: 2, order_id: id, anonymous_token: token })
    expect(await send('POST', path, headers, body)).toMatchObject({
      status: 200,
      json: { merged: false, order: { order_id: id, user_id: 2 } },
    })
    expect((await customer('ada', 'GET', '/users/1/orders')).json).toMatchObject({ total: 0 })
  })

  test('a guest’s order is transferred once, for any number of simultaneous requests', async () => {
    const { cart, take, lines } = await shopWithGuest(open)
    const own = await cart('ada', 1, { 1: 1 })
    const id = await cart('guest-1', 2, { 1: 1, 2: 1 })
    const answers = await Promise.all([1, 2, 3, 4].map(() => take(id)))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 404, 404, 404])
    expect(await lines(own)).toEqual([
      { product_id: 1, qty: 2 },
      { product_id: 2, qty: 1 },
    ])
  })

  test('a transfer succeeds beside a cart that the user creates at the same moment', async () => {
    const { cart, take, customer, shop } = await shopWithGuest(open)
    for (let round = 0; round < 5; round += 1) {
      const id = await cart('guest-1', 2, { 1: 1 })
      const [taken, opened] = await Promise.all([
        take(id),
        customer('ada', 'POST', '/users/1/orders?hub_id=1'),
      ])
      expect([taken.status, opened.status]).toEqual([200, 200])
      const active = await shop.context.db.kysely
        .selectFrom('orders')
        .select('id')
        .where('user_id', '=', 1)
        .where('processing_status', '<=', 50)
        .execute()
      expect(active).toEqual([{ id }])
      await customer('ada', 'DELETE', `/users/1/orders/${id}`)
    }
  })
})
