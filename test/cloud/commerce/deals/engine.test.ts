import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { chooseDeals, savingAlone } from '../../../../cloud/commerce/deals/engine/apply-deal.ts'
import {
  needOf,
  needsMetBy,
  splitByLargestRemainder,
  type Cart,
  type Deal,
} from '../../../../cloud/commerce/deals/engine/deal.ts'
import { cart, deal, reward, trigger } from './support/deal.ts'

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const nobody = { paidOrders: null }
const worth = ({ lines }: Cart): number => sum(lines.map(({ quantity, unitPrice }) => quantity * unitPrice))

const product = fc.integer({ min: 1, max: 4 })
const perhaps = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
/** Products may be on several lines, at several prices, and free. */
const anyCart = fc
  .array(
    fc.tuple(
      product,
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 700 }),
      fc.integer({ min: 10, max: 11 }),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((lines) => cart(...lines))

const anyTrigger = fc.oneof(
  fc
    .record({ quantity: fc.integer({ min: 1, max: 4 }), product: perhaps(product) })
    .map(({ quantity, product: of }) =>
      trigger('QUANTITY', quantity, of === undefined ? {} : { product: of }),
    ),
  fc
    .record({ quantity: fc.integer({ min: 1, max: 3 }), category: fc.integer({ min: 10, max: 11 }) })
    .map(({ quantity, category }) => trigger('CATEGORY', quantity, { category })),
  fc.integer({ min: 1, max: 2000 }).map((cents) => trigger('SPEND', cents)),
  fc.constant(trigger('ALWAYS')),
)
const place = fc.record({ product, quantity: fc.integer({ min: 1, max: 3 }) }, { requiredKeys: [] })
const anyReward = fc.oneof(
  place.map((of) => reward('FREE_ITEM', 0, of)),
  place.map((of) => reward('CHEAPEST_FREE', 0, of)),
  fc
    .tuple(fc.integer({ min: 1, max: 100 }), place)
    .map(([percent, of]) => reward('PERCENT_OFF', percent, of)),
  fc.tuple(fc.integer({ min: 1, max: 900 }), place).map(([cents, of]) => reward('AMOUNT_OFF', cents, of)),
  fc.tuple(fc.integer({ min: 0, max: 900 }), place).map(([cents, of]) => reward('FIXED_PRICE', cents, of)),
)
const anyDeal = (id: number): fc.Arbitrary<Deal> =>
  fc
    .record({
      priority: fc.integer({ min: 0, max: 2 }),
      triggers: fc.array(anyTrigger, { minLength: 1, maxLength: 3 }),
      rewards: fc.array(anyReward, { minLength: 1, maxLength: 3 }),
      stackable: fc.boolean(),
      most: perhaps(fc.integer({ min: 1, max: 500 })),
    })
    .map(({ stackable, most, ...given }) =>
      deal({
        id,
        ...given,
        constraints: {
          STACKABLE: stackable ? '1' : '0',
          ...(most !== undefined && { MAXDISCOUNT: String(most) }),
        },
      }),
    )
const anyDeals = fc
  .integer({ min: 1, max: 5 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, index) => anyDeal(index + 1))))

test('the largest remainder method adds up to the amount, with each part within a cent of its share and not above its weight', () => {
  const weights = fc.array(fc.integer({ min: 0, max: 10_000_000_000 }), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(weights, fc.double({ min: 0, max: 1, noNaN: true }), (given, part) => {
      const total = sum(given)
      const amount = Math.floor(total * part)
      const parts = splitByLargestRemainder(amount, given)
      expect(sum(parts)).toBe(amount)
      for (const [index, weight] of given.entries()) {
        expect(parts[index]).toBeLessThanOrEqual(weight)
        const exact = total === 0 ? 0n : (BigInt(amount) * BigInt(weight)) / BigInt(total)
        expect([exact, exact + 1n]).toContain(BigInt(parts[index]!))
      }
    }),
  )
})

test('the first lines get the odd cents if remainders are equal, and an empty cart gets nothing', () => {
  expect(splitByLargestRemainder(2, [1, 1, 1])).toEqual([1, 1, 0])
  expect(splitByLargestRemainder(0, [0, 0])).toEqual([0, 0])
  expect(() => splitByLargestRemainder(1, [0])).toThrow(RangeError)
})

test('no line becomes negative, and every sum is the sum of its parts', () => {
  fc.assert(
    fc.property(anyCart, anyDeals, (given, deals) => {
      const plan = chooseDeals(deals, given, nobody)
      for (const [index, { quantity, unitPrice }] of given.lines.entries()) {
        const discount = plan.discounts[index]!
        expect(Number.isInteger(discount) && discount >= 0).toBe(true)
        expect(discount).toBeLessThanOrEqual(quantity * unitPrice)
      }
      expect(plan.saving).toBe(sum(plan.discounts))
      expect(plan.saving).toBeLessThanOrEqual(worth(given))
      for (const {
        saving,
        discounts,
        deal: { terms },
      } of plan.applications) {
        expect(saving).toBe(sum(discounts))
        expect(saving).toBeGreaterThan(0)
        expect(saving).toBeLessThanOrEqual(terms.mostDiscount ?? Infinity)
      }
    }),
    { numRuns: 1000 },
  )
})

test('a deal does not change a cart that does not meet its trigger', () => {
  fc.assert(
    fc.property(anyCart, anyDeals, (given, deals) => {
      const met = needsMetBy(given.lines)
      const candidates = deals.filter((one) => met.includes(needOf(one)))
      expect(chooseDeals(candidates, given, nobody)).toEqual(chooseDeals(deals, given, nobody))
    }),
    { numRuns: 1000 },
  )
})

test('no unit is discounted twice: each deal has its own units, worth at least its discount', () => {
  fc.assert(
    fc.property(anyCart, anyDeals, (given, deals) => {
      const { applications } = chooseDeals(deals, given, nobody)
      for (const [index, { quantity, unitPrice }] of given.lines.entries()) {
        expect(sum(applications.map(({ units }) => units[index]!))).toBeLessThanOrEqual(quantity)
        for (const { units, discounts } of applications)
          expect(discounts[index]).toBeLessThanOrEqual(units[index]! * unitPrice)
      }
    }),
    { numRuns: 1000 },
  )
})

test('the units that remain without the free ones meet the trigger once for each reward', () => {
  const given = fc.record({
    cart: anyCart,
    needed: fc.integer({ min: 1, max: 4 }),
    of: perhaps(product),
    free: fc.integer({ min: 1, max: 3 }),
    gift: perhaps(product),
    type: fc.constantFrom('FREE_ITEM' as const, 'CHEAPEST_FREE' as const),
  })
  fc.assert(
    fc.property(given, ({ cart: before, needed, of, free, gift, type }) => {
      const one = deal({
        triggers: [trigger('QUANTITY', needed, of === undefined ? {} : { product: of })],
        rewards: [reward(type, 0, { quantity: free, ...(gift !== undefined && { product: gift }) })],
      })
      const [application] = chooseDeals([one], before, nobody).applications
      if (!application) return
      const given = sum(application.units)
      const left = sum(
        before.lines.map(({ productId, quantity }, index) =>
          of === undefined || productId === of ? quantity - application.units[index]! : 0,
        ),
      )
      expect(left).toBeGreaterThanOrEqual(needed * Math.ceil(given / free))
    }),
    { numRuns: 1000 },
  )
})

test('several rewards of a deal together give no unit away that met its trigger', () => {
  const one = deal({
    triggers: [trigger('QUANTITY', 2, { product: 1 })],
    rewards: [
      reward('FREE_ITEM', 0, { product: 1, quantity: 1 }),
      reward('CHEAPEST_FREE', 0, { product: 1, quantity: 1 }),
    ],
  })
  expect(chooseDeals([one], cart([1, 3, 100]), nobody).saving).toBe(100)
  expect(chooseDeals([one], cart([1, 4, 100]), nobody).saving).toBe(200)
  const gifts = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 2, maxLength: 3 })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 4 }),
      gifts,
      fc.integer({ min: 1, max: 30 }),
      (needed, free, units) => {
        const many = deal({
          triggers: [trigger('QUANTITY', needed, { product: 1 })],
          rewards: free.map((quantity) => reward('FREE_ITEM', 0, { product: 1, quantity })),
        })
        const given = sum(chooseDeals([many], cart([1, units, 100]), nobody).units)
        expect(units - given).toBeGreaterThanOrEqual(needed * Math.ceil(given / sum(free)))
      },
    ),
  )
})

test('buy n, get q gives as many free units as possible, and never fewer for a larger cart', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 300 }),
      (needed, free, price) => {
        const one = deal({
          triggers: [trigger('QUANTITY', needed, { product: 1 })],
          rewards: [reward('FREE_ITEM', 0, { product: 1, quantity: free })],
        })
        let before = 0
        for (let units = 1; units <= 40; units += 1) {
          const saving = chooseDeals([one], cart([1, units, price]), nobody).saving
          const counts = Array.from({ length: Math.floor(units / needed) + 1 }, (_, times) =>
            Math.min(times * free, units - times * needed),
          )
          expect(saving).toBe(Math.max(...counts) * price)
          expect(saving).toBeGreaterThanOrEqual(before)
          before = saving
        }
      },
    ),
    { numRuns: 60 },
  )
})

test('the order of the deals in the list makes no difference', () => {
  fc.assert(
    fc.property(
      anyCart,
      anyDeals,
      fc.array(fc.nat(), { minLength: 5, maxLength: 5 }),
      (given, deals, keys) => {
        const shuffled = deals.toSorted((a, b) => keys[a.id - 1]! - keys[b.id - 1]!)
        expect(chooseDeals(shuffled, given, nobody)).toEqual(chooseDeals(deals, given, nobody))
      },
    ),
  )
})

test('no single deal saves more than the chosen deals, and of equal deals the lower id is chosen', () => {
  fc.assert(
    fc.property(anyCart, anyDeals, (given, deals) => {
      const plan = chooseDeals(deals, given, nobody)
      const isAlone = plan.applications.length === 1 && !plan.applications[0]!.deal.terms.stackable
      for (const one of deals) {
        const saving = savingAlone(one, given, nobody)
        expect(saving).toBeLessThanOrEqual(plan.saving)
        if (isAlone && !one.terms.stackable && saving === plan.saving)
          expect(plan.applications[0]!.deal.id).toBeLessThanOrEqual(one.id)
      }
    }),
    { numRuns: 500 },
  )
})

test('a stack that saves less than one of its deals gives way to that deal', () => {
  const deals = [
    deal({ id: 1, rewards: [reward('PERCENT_OFF', 20, { product: 1 })], constraints: { STACKABLE: '1' } }),
    deal({ id: 2, rewards: [reward('AMOUNT_OFF', 300)], constraints: { STACKABLE: '1' } }),
  ]
  const plan = chooseDeals(deals, cart([1, 2, 500]), nobody)
  expect([plan.saving, plan.applications.map((one) => one.deal.id)]).toEqual([300, [2]])
})

test('the chosen deals are the best of all allowed sets, if each deal has its own products', () => {
  const offers = fc.uniqueArray(
    fc.record({
      product: fc.integer({ min: 1, max: 6 }),
      cents: fc.integer({ min: 1, max: 90 }),
      stackable: fc.boolean(),
    }),
    { selector: ({ product: of }) => of, minLength: 1, maxLength: 6 },
  )
  const quantities = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 6, maxLength: 6 })
  fc.assert(
    fc.property(offers, quantities, (given, units) => {
      const lines = units.map((quantity, index) => [index + 1, quantity, 100] as const)
      const deals = given.map(({ product: of, cents, stackable }, index) =>
        deal({
          id: index + 1,
          rewards: [reward('AMOUNT_OFF', cents, { product: of })],
          constraints: { STACKABLE: stackable ? '1' : '0' },
        }),
      )
      const savings = given.map(({ product: of, cents }) => cents * units[of - 1]!)
      let best = 0
      for (let set = 1; set < 2 ** given.length; set += 1) {
        const members = given.flatMap((_, index) => ((set >> index) & 1 ? [index] : []))
        const isAllowed = members.length === 1 || members.every((index) => given[index]!.stackable)
        if (isAllowed) best = Math.max(best, sum(members.map((index) => savings[index]!)))
      }
      expect(chooseDeals(deals, cart(...lines), nobody).saving).toBe(best)
    }),
  )
})

test('each stacked deal has the units that earlier ones left, or one deal applies alone, as a plain recount unit by unit finds', () => {
  const simple = fc.record({
    product: perhaps(product),
    percent: fc.constantFrom(10, 25, 50),
    priority: fc.integer({ min: 0, max: 3 }),
  })
  fc.assert(
    fc.property(anyCart, fc.array(simple, { minLength: 1, maxLength: 5 }), (given, offers) => {
      const deals = offers.map(({ product: of, percent, priority }, index) =>
        deal({
          id: index + 1,
          priority,
          rewards: [reward('PERCENT_OFF', percent, of === undefined ? {} : { product: of })],
          constraints: { STACKABLE: '1' },
        }),
      )
      const units = given.lines.flatMap(({ productId, quantity, unitPrice }) =>
        Array.from({ length: quantity }, () => ({ productId, unitPrice, isTaken: false })),
      )
      const order = offers
        .map((offer, index) => ({ ...offer, id: index + 1 }))
        .sort(
          (a, b) =>
            Number(a.product === undefined) - Number(b.product === undefined) ||
            b.priority - a.priority ||
            a.id - b.id,
        )
      let stacked = 0
      for (const { product: of, percent } of order) {
        const group = units.filter(
          ({ productId, unitPrice, isTaken }) =>
            !isTaken && unitPrice > 0 && (of === undefined || productId === of),
        )
        const off = Math.floor((sum(group.map(({ unitPrice }) => unitPrice)) * percent) / 100)
        if (off === 0) continue
        for (const unit of group) unit.isTaken = true
        stacked += off
      }
      const alone = deals.map((one) => savingAlone(one, given, nobody))
      expect(chooseDeals(deals, given, nobody).saving).toBe(Math.max(stacked, ...alone))
    }),
  )
})

test('the saving of a deal alone is the saving of the chosen deals if there is no other', () => {
  fc.assert(
    fc.property(anyCart, anyDeal(1), (given, one) => {
      expect(savingAlone(one, given, nobody)).toBe(chooseDeals([one], given, nobody).saving)
    }),
    { numRuns: 1000 },
  )
})

test('a deal reads each line of a cart a few times, whatever numbers of units, triggers and rewards there are', () => {
  const reads = (parts: number, units: number): number => {
    let count = 0
    const lines = Array.from({ length: 100 }, (_, index) => {
      const unitPrice = 100 + index
      return {
        productId: index + 1,
        categoryIds: [],
        quantity: units,
        get unitPrice() {
          count += 1
          return unitPrice
        },
      }
    })
    const one = deal({
      triggers: Array.from({ length: parts }, () => trigger('QUANTITY')),
      rewards: Array.from({ length: parts }, () => reward('FREE_ITEM', 0, { quantity: 1 })),
    })
    const given = { lines, total: 0 }
    chooseDeals([one], given, nobody)
    const prepared = count
    chooseDeals([{ ...one, id: 2 }], given, nobody)
    return count - prepared
  }
  // Three numbers of applications are tried, and each reads the lines that it discounts.
  expect(reads(10, 1000)).toBeLessThan(10 * 100)
})
