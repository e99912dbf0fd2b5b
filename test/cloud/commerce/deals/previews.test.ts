import { expect, test } from 'vitest'
import { cart, dealsOverHttp } from './support/deals-over-http.ts'

test('a preview lists the deals of a cart by the given prices and total', async () => {
  const { send, create } = await dealsOverHttp()
  await create({
    name: 'Two drinks',
    description: 'd',
    priority: 1,
    triggers: [{ type: 'CATEGORY', category_id: 1, quantity: 3 }],
    rewards: [{ type: 'FREE_ITEM', product_id: 2, quantity: 1 }],
    constraints: [{ type: 'STACKABLE', value: '1' }],
  })
  await create({ constraints: [{ type: 'SALEAMT', value: '1000' }], start: '2025-01-01' })
  await create({
    name: 'First',
    triggers: [{ type: 'FIRST_ORDER' }],
    rewards: [{ type: 'AMOUNT_OFF', discount_pct_or_price: 150 }],
  })
  const eligible = async (wish: object) => {
    const { status, json } = await send('POST', '/check-eligibility', cart(wish))
    expect(status).toBe(200)
    return (json as { eligible_deals: { deal_id: number }[] }).eligible_deals
  }
  // Product 2 came without its category, which the hub knows.
  expect(await eligible({ cart_total: 679 })).toEqual([
    {
      deal_id: 1,
      deal_name: 'Two drinks',
      description: 'd',
      display_text: null,
      reward_description: '1 × Product 2 free',
      potential_savings: 0,
      start: null,
      end: null,
      stackable: true,
    },
  ])
  expect(await eligible({ cart_total: 1000, user_order_count: 0 })).toMatchObject([
    { deal_id: 1 },
    {
      deal_id: 2,
      potential_savings: 67,
      reward_description: '10% off the whole cart',
      start: '2025-01-01',
      stackable: false,
    },
    { deal_id: 3, potential_savings: 150, reward_description: '1.50 USD off the whole cart' },
  ])
  expect(await eligible({ cart_total: 0, user_order_count: 2 })).toMatchObject([{ deal_id: 1 }])
  expect(await eligible({ cart_total: 5, user_id: 1 })).toMatchObject([{ deal_id: 1 }, { deal_id: 3 }])
  expect(await eligible({ cart_total: 0, cart_items: [] })).toEqual([])
  expect((await send('GET', '/1/redemptions')).json).toMatchObject({ usage: { total: 0 }, data: [] })
})

test('the applied deals are the best combination, line by line, with the reason for each other deal', async () => {
  const { send, create } = await dealsOverHttp()
  await create()
  await create({ name: 'Free', rewards: [{ type: 'FREE_ITEM', product_id: 1, quantity: 1 }] })
  await create({ name: 'Later', start: '2199-01-01' })
  await create({ name: 'Off', is_deal_active: false })
  await create({ name: 'Rich', constraints: [{ type: 'SALEAMT', value: '100000' }] })
  const applied = await send('POST', '/apply-reward', cart({ deal_ids: [1, 2, 2, 3, 4, 5, 99] }))
  expect([applied.status, applied.json]).toEqual([
    200,
    {
      success: true,
      deal_applied: true,
      modified_cart_items: [
        {
          product_id: 1,
          category_id: 1,
          quantity: 2,
          original_unit_price: 250,
          discounted_unit_price: 0,
          discount_applied: 250,
          quantity_discounted: 1,
        },
        {
          product_id: 2,
          category_id: 1,
          quantity: 1,
          original_unit_price: 179,
          discounted_unit_price: 179,
          discount_applied: 0,
          quantity_discounted: 0,
        },
      ],
      original_cart_total: 679,
      discounted_cart_total: 429,
      total_savings: 250,
      message: [
        'Applied: Free.',
        'Deal 1 (Ten percent) was not applied: what other deals save it cannot be combined with.',
        'Deal 3 (Later) was not applied: it has not started.',
        'Deal 4 (Off) was not applied: it is switched off.',
        'Deal 5 (Rich) was not applied: the cart is worth too little.',
        'Deal 99 was not applied: this hub has no such deal.',
      ].join(' '),
    },
  ])
  const none = await send('POST', '/apply-reward', cart({ deal_ids: [5] }))
  expect([none.status, none.json]).toMatchObject([
    200,
    {
      success: true,
      deal_applied: false,
      original_cart_total: 679,
      discounted_cart_total: 679,
      total_savings: 0,
      message: 'Deal 5 (Rich) was not applied: the cart is worth too little.',
    },
  ])
  const missing = await send(
    'POST',
    '/apply-reward',
    cart({ deal_ids: [2], cart_items: [{ product_id: 2, quantity: 1, unit_price: 9 }] }),
  )
  expect(missing.json).toMatchObject({
    deal_applied: false,
    message: expect.stringContaining('cheaper') as string,
  })
})
