import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { saleLines, type SoldLine } from '../../../../cloud/commerce/analytics/sale.ts'

const line = (id: number, quantity: number, net: number, refundedQuantity = 0): SoldLine => ({
  id,
  productId: id * 10,
  quantity,
  refundedQuantity,
  originalPrice: net,
  purchasePrice: 40,
  net,
  tax: 0,
})
const returned = (lineId: number | null, amount: number) => ({ lineId, amount, tax: 0 })
/** Without discount, tax and refunded money. */
const firstFigures = (sale: ReturnType<typeof saleLines>) => sale.map((figures) => figures.slice(0, 4))
const lines = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.nat(5000)), { minLength: 1, maxLength: 6 })
  .map((all) => all.map(([quantity, net], index) => line(index + 1, quantity, net)))
const revenueOf = (sale: ReturnType<typeof saleLines>) =>
  sale.reduce((sum, [, , revenue]) => sum + revenue, 0)

test.each([
  [
    'nothing refunded',
    [],
    [
      [10, 3, 300, 120],
      [20, 1, 100, 40],
    ],
  ],
  [
    'a line’s own refund',
    [returned(1, 100)],
    [
      [10, 3, 200, 120],
      [20, 1, 100, 40],
    ],
  ],
  [
    'a refund of the whole order',
    [returned(null, 40)],
    [
      [10, 3, 270, 120],
      [20, 1, 90, 40],
    ],
  ],
  [
    'both kinds of refund: a line’s rest bears its part',
    [returned(1, 300), returned(null, 50)],
    [
      [10, 3, 0, 120],
      [20, 1, 50, 40],
    ],
  ],
])('refunds reduce a sale: %s', (_name, refunds, expected) => {
  expect(firstFigures(saleLines([line(1, 3, 300), line(2, 1, 100)], refunds))).toEqual(expected)
})

test('refunded units are neither sold nor counted as cost', () => {
  expect(firstFigures(saleLines([line(1, 3, 300, 2)], [returned(1, 200)]))).toEqual([[10, 1, 100, 40]])
})

test('free lines bear no refund, and if all lines are free the last one bears it', () => {
  expect(firstFigures(saleLines([line(1, 1, 0), line(2, 1, 0)], [returned(null, 3)]))).toEqual([
    [10, 1, 0, 40],
    [20, 1, -3, 40],
  ])
})

test('products add up to the order for any refunds, and a refund of the order makes no line negative', () => {
  fc.assert(
    fc.property(lines, fc.array(fc.nat(3000), { maxLength: 4 }), (sold, amounts) => {
      const all = sold.reduce((sum, { net }) => sum + net, 0)
      const refunds = amounts.map((amount) => returned(null, amount))
      const back = amounts.reduce((sum, amount) => sum + amount, 0)
      const sale = saleLines(sold, refunds)
      expect(revenueOf(sale)).toBe(all - back)
      if (back <= all) expect(sale.every(([, , revenue]) => revenue >= 0)).toBe(true)
    }),
  )
})

test('the discount of a line is of its units that count, and its tax is what refunds have left', () => {
  const sold = { ...line(1, 3, 400, 1), originalPrice: 200, tax: 40 }
  expect(saleLines([sold], [{ lineId: 1, amount: 133, tax: 13 }])).toEqual([[10, 2, 267, 80, 133, 27, 133]])
  expect(saleLines([sold], [{ lineId: null, amount: 400, tax: 40 }], true)).toEqual([
    [10, 0, 0, 0, 0, 0, 400],
  ])
})

test('revenue and refunded money of each line add up to its price, for any refunds', () => {
  fc.assert(
    fc.property(lines, fc.array(fc.nat(3000), { maxLength: 4 }), (sold, amounts) => {
      const sale = saleLines(
        sold,
        amounts.map((amount) => returned(null, amount)),
      )
      expect(sale.map(([, , revenue, , , , refunded]) => revenue + refunded)).toEqual(
        sold.map(({ net }) => net),
      )
    }),
  )
})
