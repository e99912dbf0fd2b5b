import { expect, test } from 'vitest'
import { errorOf } from '../../support/app.ts'
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
  ['a type that is none', trigger({ type: 'SOMETIMES' }), ['triggers', 1, 'type'], 'literal_error'],
  ['a type that is missing', reward({}), ['rewards', 0, 'type'], 'missing'],
  [
    'QUANTITY of how many',
    trigger({ type: 'QUANTITY', product_id: 1 }),
    ['triggers', 1, 'quantity'],
    'missing',
  ],
  ['SPEND of how much', trigger({ type: 'SPEND' }), ['triggers', 1, 'quantity'], 'missing'],
  ['CATEGORY of what', trigger({ type: 'CATEGORY' }), ['triggers', 1, 'category_id'], 'missing'],
  ['0 units', trigger({ type: 'QUANTITY', quantity: 0 }), ['triggers', 1, 'quantity'], 'greater_than_equal'],
  [
    '1001 units',
    trigger({ type: 'QUANTITY', quantity: 1001 }),
    ['triggers', 1, 'quantity'],
    'less_than_equal',
  ],
  ['half a unit', trigger({ type: 'QUANTITY', quantity: 1.5 }), ['triggers', 1, 'quantity'], 'int_parsing'],
  [
    'a product of nobody',
    trigger({ type: 'QUANTITY', quantity: 1, product_id: 9 }),
    ['triggers', 1, 'product_id'],
    'value_error',
  ],
  [
    'a category of nobody',
    trigger({ type: 'CATEGORY', category_id: 9 }),
    ['triggers', 1, 'category_id'],
    'value_error',
  ],
  [
    'a name of no category',
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
    'a gift of nobody',
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
    'a constraint that is none',
    constraint({ type: 'MOON', value: '1' }),
    ['constraints', 0, 'type'],
    'literal_error',
  ],
  [
    'a value that is no text',
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
    'a constraint twice',
    constraint({ type: 'MAXUSES', value: '1' }, { type: 'MAXUSES', value: '2' }),
    ['constraints', 1, 'type'],
    'value_error',
  ],
  ['a day that there is not', { start: '2025-02-30' }, ['start'], 'string_pattern_mismatch'],
  ['an end before the start', { start: '2025-02-02', end: '2025-02-01' }, ['end'], 'value_error'],
])('a deal with %s is 422 at its place', async (_name, wish, loc, type) => {
  const { send } = await dealsOverHttp()
  const answer = await send('POST', '/', newDeal(wish))
  expect([answer.status, errorOf(answer).error.code]).toEqual([422, 'validation_error'])
  expect(errorOf(answer).detail).toContainEqual(expect.objectContaining({ loc: ['body', ...loc], type }))
  expect((await send('GET', '/hub/1')).json).toEqual([])
})
