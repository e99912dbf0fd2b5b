import { expect, test } from 'vitest'
import { errorOf } from '../../../world/cloud.ts'
import { dealsOverHttp, newDeal } from './support/deals-over-http.ts'

type Loc = (string | number)[]
const trigger = (fields: object) => ({ triggers: [{ type: 'ALWAYS' }, fields] })
const reward = (fields: object) => ({ rewards: [fields] })
const constraint = (...constraints: object[]) => ({ constraints })

test.each<[string, object, Loc, string]>([
  ['no name', { name: ' ' }, ['name'], 'string_too_short'],
  ['no trigger', { triggers: [] }, ['triggers'], 'value_error'],
  ['no list of triggers', { triggers: {} }, ['triggers'], 'list_type'],
  [
    'too many rewards',
    { rewards: Array.from({ length: 11 }, () => ({ type: 'FREE_ITEM' })) },
    ['rewards'],
    'too_long',
  ],
  ['an unknown type', trigger({ type: 'SOMETIMES' }), ['triggers', 1, 'type'], 'literal_error'],
  ['a missing type', reward({}), ['rewards', 0, 'type'], 'missing'],
  [
    'QUANTITY without a quantity',
    trigger({ type: 'QUANTITY', product_id: 1 }),
    ['triggers', 1, 'quantity'],
    'missing',
  ],
  ['SPEND without an amount', trigger({ type: 'SPEND' }), ['triggers', 1, 'quantity'], 'missing'],
  ['CATEGORY without a category', trigger({ type: 'CATEGORY' }), ['triggers', 1, 'category_id'], 'missing'],
  ['0 units', trigger({ type: 'QUANTITY', quantity: 0 }), ['triggers', 1, 'quantity'], 'greater_than_equal'],
  [
    '1001 units',
    trigger({ type: 'QUANTITY', quantity: 1001 }),
    ['triggers', 1, 'quantity'],
    'less_than_equal',
  ],
  ['half a unit', trigger({ type: 'QUANTITY', quantity: 1.5 }), ['triggers', 1, 'quantity'], 'int_parsing'],
  [
    'an unknown product',
    trigger({ type: 'QUANTITY', quantity: 1, product_id: 9 }),
    ['triggers', 1, 'product_id'],
    'value_error',
  ],
  [
    'an unknown category',
    trigger({ type: 'CATEGORY', category_id: 9 }),
    ['triggers', 1, 'category_id'],
    'value_error',
  ],
  [
    'an unknown category name',
    trigger({ type: 'CATEGORY', category: 'Cars' }),
    ['triggers', 1, 'category'],
    'value_error',
  ],
  [
    'a name of another category',
    trigger({ type: 'CATEGORY', category_id: 1, category: 'Cars' }),
    ['triggers', 1, 'category'],
    'value_error',
  ],
  [
    'an unknown gift',
    reward({ type: 'FREE_ITEM', product_id: 9 }),
    ['rewards', 0, 'product_id'],
    'value_error',
  ],
  ['no percentage', reward({ type: 'PERCENT_OFF' }), ['rewards', 0, 'discount_pct_or_price'], 'missing'],
  [
    '0 percent',
    reward({ type: 'PERCENT_OFF', discount_pct_or_price: 0 }),
    ['rewards', 0, 'discount_pct_or_price'],
    'greater_than_equal',
  ],
  [
    '101 percent',
    reward({ type: 'PERCENT_OFF', discount_pct_or_price: 101 }),
    ['rewards', 0, 'discount_pct_or_price'],
    'less_than_equal',
  ],
  [
    'a negative price',
    reward({ type: 'FIXED_PRICE', discount_pct_or_price: -1 }),
    ['rewards', 0, 'discount_pct_or_price'],
    'greater_than_equal',
  ],
  [
    'an unknown constraint',
    constraint({ type: 'MOON', value: '1' }),
    ['constraints', 0, 'type'],
    'literal_error',
  ],
  [
    'a value that is not a text',
    constraint({ type: 'SALEAMT', value: 500 }),
    ['constraints', 0, 'value'],
    'string_type',
  ],
  [
    'a value that cannot be read',
    constraint({ type: 'TIMEWINDOW', value: '9-17' }),
    ['constraints', 0, 'value'],
    'value_error',
  ],
  [
    'a repeated constraint',
    constraint({ type: 'MAXUSES', value: '1' }, { type: 'MAXUSES', value: '2' }),
    ['constraints', 1, 'type'],
    'value_error',
  ],
  ['an impossible date', { start: '2025-02-30' }, ['start'], 'string_pattern_mismatch'],
  [
    'a hundred percent off all units of its trigger’s product',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
      rewards: [{ type: 'PERCENT_OFF', product_id: 1, discount_pct_or_price: 100 }],
    },
    ['rewards', 0],
    'value_error',
  ],
  [
    'a hundred percent off the units that its trigger asks for',
    {
      triggers: [{ type: 'QUANTITY', quantity: 2, product_id: 1 }],
      rewards: [{ type: 'PERCENT_OFF', quantity: 2, product_id: 1, discount_pct_or_price: 100 }],
    },
    ['rewards', 0],
    'value_error',
  ],
  [
    'a price of 0 for the only unit of its trigger',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
      rewards: [{ type: 'FIXED_PRICE', quantity: 1, product_id: 1, discount_pct_or_price: 0 }],
    },
    ['rewards', 0],
    'value_error',
  ],
  [
    'a free item that is all of its trigger’s product',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }, { type: 'ALWAYS' }],
      rewards: [{ type: 'FREE_ITEM', product_id: 1 }],
    },
    ['rewards', 0],
    'value_error',
  ],
  [
    'no weekday within its dates',
    { start: '2025-06-02', end: '2025-06-04', ...constraint({ type: 'WEEKDAYS', value: '4,7' }) },
    ['constraints'],
    'value_error',
  ],
  [
    'a limit of no use',
    constraint({ type: 'MAXUSES', value: '0' }),
    ['constraints', 0, 'value'],
    'value_error',
  ],
  [
    'a limit of no use per customer',
    constraint({ type: 'MAXUSES_USER', value: '0' }),
    ['constraints', 0, 'value'],
    'value_error',
  ],
  [
    'a window that never opens',
    constraint({ type: 'TIMEWINDOW', value: '10:00-10:00' }),
    ['constraints', 0, 'value'],
    'value_error',
  ],
  ['an end before the start', { start: '2025-02-02', end: '2025-02-01' }, ['end'], 'value_error'],
])('a deal with %s is 422 at its place', async (_name, wish, loc, type) => {
  const { send } = await dealsOverHttp()
  const answer = await send('POST', '/', newDeal(wish))
  expect([answer.status, errorOf(answer).error.code]).toEqual([422, 'validation_error'])
  expect(errorOf(answer).detail).toContainEqual(expect.objectContaining({ loc: ['body', ...loc], type }))
  expect((await send('GET', '/hub/1')).json).toEqual([])
})

test.each<[string, object]>([
  [
    'buys one and gets one more',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
      rewards: [{ type: 'FREE_ITEM', quantity: 1, product_id: 1 }],
    },
  ],
  [
    'buys one and gets 99 percent off it',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
      rewards: [{ type: 'PERCENT_OFF', product_id: 1, discount_pct_or_price: 99 }],
    },
  ],
  [
    'buys one and gets another product free',
    {
      triggers: [{ type: 'QUANTITY', quantity: 1, product_id: 1 }],
      rewards: [{ type: 'PERCENT_OFF', product_id: 2, discount_pct_or_price: 100 }],
    },
  ],
  [
    'buys on one Wednesday',
    { start: '2025-06-04', end: '2025-06-04', ...constraint({ type: 'WEEKDAYS', value: '3' }) },
  ],
  [
    'buys in the night that started the day before',
    {
      start: '2025-06-04',
      end: '2025-06-04',
      ...constraint({ type: 'WEEKDAYS', value: '2' }, { type: 'TIMEWINDOW', value: '22:00-02:00' }),
    },
  ],
])('a deal for a customer who %s can be created', async (_name, wish) => {
  const { send } = await dealsOverHttp()
  expect((await send('POST', '/', newDeal(wish))).status).toBe(200)
})

test('an update that leaves a deal without a weekday within its dates is 422 and changes nothing', async () => {
  const { send, create } = await dealsOverHttp()
  const id = await create({ start: '2025-06-02', ...constraint({ type: 'WEEKDAYS', value: '4' }) })
  const answer = await send('PUT', `/${id}`, { end: '2025-06-04' })
  expect(answer.status).toBe(422)
  expect(errorOf(answer).detail).toMatchObject([
    { loc: ['body', 'end'], msg: expect.stringContaining('can never apply') as string },
  ])
  expect((await send('PUT', `/${id}`, { end: '2025-06-05' })).json).toMatchObject({ end: '2025-06-05' })
})
