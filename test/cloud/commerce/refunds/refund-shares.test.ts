import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { amountShare, nextUnits, takeShare, type Share } from '../../../../cloud/commerce/refunds/shares.ts'

const share = fc
  .tuple(fc.nat({ max: 100_000 }), fc.nat({ max: 100_000 }))
  .map(([net, tax]): Share => ({ amount: net + tax, tax }))
const none: Share = { amount: 0, tax: 0 }
const plus = (a: Share, b: Share): Share => ({ amount: a.amount + b.amount, tax: a.tax + b.tax })

test('a line returns exactly its price for any portions of its refunds', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 50_000 }),
      fc.nat({ max: 5_000 }),
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 }),
      (net, tax, portions) => {
        const qty = portions.reduce((sum, units) => sum + units, 0)
        let refundedUnits = 0
        let returned = none
        for (const units of portions) {
          returned = plus(returned, nextUnits({ qty, net, tax, refundedUnits, returned }, units))
          refundedUnits += units
        }
        expect(returned).toEqual({ amount: net + tax, tax })
      },
    ),
  )
})

test('refused portions that are made again never return more', () => {
  const step = fc.record({ units: fc.integer({ min: 1, max: 3 }), refuse: fc.nat() })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.nat({ max: 1000 }),
      fc.nat({ max: 100 }),
      fc.array(step, { maxLength: 30 }),
      (qty, net, tax, steps) => {
        const made: (Share & { units: number })[] = []
        const line = () => ({
          qty,
          net,
          tax,
          refundedUnits: made.reduce((sum, { units }) => sum + units, 0),
          returned: made.reduce(plus, none),
        })
        for (const { units, refuse } of steps) {
          const current = line()
          if (current.refundedUnits + units <= qty) made.push({ units, ...nextUnits(current, units) })
          else made.splice(refuse % made.length, 1)
          expect(line().returned.amount).toBeLessThanOrEqual(net + tax)
        }
        const current = line()
        const rest = qty - current.refundedUnits
        if (rest > 0) expect(plus(current.returned, nextUnits(current, rest)).amount).toBe(net + tax)
      },
    ),
  )
})

test('a share is never more than the rest, and the rest never has more tax than money', () => {
  fc.assert(
    fc.property(share, fc.array(share, { maxLength: 10 }), (whole, wishes) => {
      let left = whole
      for (const wish of wishes) {
        const taken = takeShare(left, wish)
        expect(taken.amount).toBe(Math.min(wish.amount, left.amount))
        expect(taken.tax).toBeLessThanOrEqual(taken.amount)
        expect(taken.tax).toBeGreaterThanOrEqual(0)
        left = { amount: left.amount - taken.amount, tax: left.tax - taken.tax }
        expect(left.tax).toBeGreaterThanOrEqual(0)
        expect(left.tax).toBeLessThanOrEqual(left.amount)
      }
      expect(takeShare(left, { amount: left.amount, tax: 0 })).toEqual(left)
    }),
  )
})

test('a refund of an amount takes its part of the tax, rounded down, and the last one takes the rest', () => {
  expect(amountShare({ amount: 735, tax: 56 }, 100)).toEqual({ amount: 100, tax: 7 })
  expect(amountShare({ amount: 635, tax: 49 }, 635)).toEqual({ amount: 635, tax: 49 })
  expect(amountShare(none, 0)).toEqual(none)
  const large = { amount: 3_862_021_592, tax: 965_505_398 }
  expect(amountShare(large, 2_043_419_584)).toEqual({ amount: 2_043_419_584, tax: 510_854_896 })
})
