import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { discountedPrice, priceOrder, taxOn } from '../../../../cloud/commerce/catalogue/pricing.ts'
import { TaxPercent, toMillipercent } from '../../../../cloud/commerce/catalogue/pricing.ts'

const line = fc
  .record({
    quantity: fc.integer({ min: 1, max: 1000 }),
    originalPrice: fc.integer({ min: 1, max: 1_000_000 }),
    markdownPercent: fc.integer({ min: 0, max: 99 }),
    /** Per mille of the line. */
    deal: fc.integer({ min: 0, max: 1000 }),
  })
  .map(({ deal, ...rest }) => ({
    ...rest,
    discount: Math.floor(
      (discountedPrice(rest.originalPrice, rest.markdownPercent) * rest.quantity * deal) / 1000,
    ),
  }))
/** Thousandths of a percent. */
const taxRate = fc.integer({ min: 0, max: 30_000 })

test('a markdown is rounded half up', () => {
  expect(discountedPrice(250, 0)).toBe(250)
  expect(discountedPrice(199, 10)).toBe(179)
  expect(discountedPrice(150, 33)).toBe(101)
  expect(discountedPrice(1, 50)).toBe(1)
  expect(discountedPrice(1, 51)).toBe(0)
})

test('tax is rounded half up on each line', () => {
  expect(taxOn(200, 8250)).toBe(17)
  expect(taxOn(100, 8500)).toBe(9)
  expect(taxOn(100, 8499)).toBe(8)
})

test('a tax rate of three decimals is applied exactly', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 99_999 }), fc.integer({ min: 0, max: 1_000_000 }), (rate, net) => {
      const percent = (rate / 1000).toFixed(3)
      expect(toMillipercent(TaxPercent.parse(percent))).toBe(rate)
      const exact = (BigInt(net) * BigInt(rate) + 50_000n) / 100_000n
      expect(taxOn(net, toMillipercent(percent))).toBe(Number(exact))
    }),
  )
  expect(taxOn(400, toMillipercent('8.875'))).toBe(36)
  for (const wrong of ['8.8755', '100', '-1', '8,875', '.5', '1e1', ''])
    expect(TaxPercent.safeParse(wrong).success).toBe(false)
})

test('prices are integer cents, totals are sums of lines, and nothing is negative', () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), taxRate, (lines, rate) => {
      const order = priceOrder(lines, rate)
      const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0)
      expect(order.totalDiscounted).toBe(sum(order.lines.map(({ net }) => net)))
      expect(order.taxTotal).toBe(sum(order.lines.map(({ tax }) => tax)))
      expect(order.total).toBe(order.totalDiscounted + order.taxTotal)
      expect(order.totalDiscounted).toBeLessThanOrEqual(order.totalOriginal)
      for (const [index, priced] of order.lines.entries()) {
        expect(Number.isSafeInteger(priced.net) && priced.net >= 0 && priced.tax >= 0).toBe(true)
        expect(priced.net).toBe(priced.unitPrice * lines[index]!.quantity - lines[index]!.discount)
        expect(Math.abs(priced.tax - (priced.net * rate) / 100_000)).toBeLessThanOrEqual(0.5)
      }
    }),
  )
})
