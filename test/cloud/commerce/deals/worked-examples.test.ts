import { describe, expect, test } from 'vitest'
import { chooseDeals } from '../../../../cloud/commerce/deals/engine/apply-deal.ts'
import type { Cart, Deal } from '../../../../cloud/commerce/deals/engine/deal.ts'
import { cart, deal, reward, trigger } from './support/deal.ts'

interface Example {
  name: string
  cart: Cart
  deals: Deal[]
  /** Discount of each line, in cents. */
  off: number[]
  /** Ids of the deals with an effect. */
  applied?: number[]
  paidOrders?: number
}

const [cola, water, chips, sandwich] = [1, 2, 3, 4]
const [drinks, snacks, softDrinks] = [10, 20, 11]
const stackable = { STACKABLE: '1' } as const

const twoPlusOne = (id = 1, constraints = {}): Deal =>
  deal({
    id,
    triggers: [trigger('QUANTITY', 2, { product: cola })],
    rewards: [reward('FREE_ITEM', 0, { product: cola, quantity: 1 })],
    constraints,
  })
const percentOff = (percent: number, given: Partial<Parameters<typeof deal>[0]> = {}): Deal =>
  deal({ rewards: [reward('PERCENT_OFF', percent)], ...given })

const examples: Example[] = [
  // QUANTITY and FREE_ITEM: whole multiples, and units that met a trigger are not free.
  { name: 'two units at the price of two', cart: cart([cola, 2, 250]), deals: [twoPlusOne()], off: [0] },
  { name: 'the third of three units is free', cart: cart([cola, 3, 250]), deals: [twoPlusOne()], off: [250] },
  { name: 'one of five units is free', cart: cart([cola, 5, 250]), deals: [twoPlusOne()], off: [250] },
  { name: 'two of six units are free', cart: cart([cola, 6, 250]), deals: [twoPlusOne()], off: [500] },
  {
    name: 'two colas give chips, at most as many as the cart has',
    cart: cart([cola, 4, 250], [chips, 1, 199]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 2, { product: cola })],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
      }),
    ],
    off: [0, 199],
  },
  {
    name: 'units not needed for a trigger of any product can be free',
    cart: cart([chips, 1, 900], [cola, 2, 100]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 2)],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
      }),
    ],
    off: [900, 0],
  },
  {
    name: 'a partial reward is given: two plus two, with three units',
    cart: cart([cola, 3, 250]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 2, { product: cola })],
        rewards: [reward('FREE_ITEM', 0, { product: cola, quantity: 2 })],
      }),
    ],
    off: [250],
  },
  {
    name: 'one sandwich makes all water free',
    cart: cart([sandwich, 1, 549], [water, 3, 149]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 1, { product: sandwich })],
        rewards: [reward('FREE_ITEM', 0, { product: water })],
      }),
    ],
    off: [0, 447],
  },
  {
    name: 'all units are free except the one that must be bought',
    cart: cart([water, 5, 149]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 1, { product: water })],
        rewards: [reward('FREE_ITEM', 0, { product: water })],
      }),
    ],
    off: [596],
  },
  {
    name: 'a bundle requires both of its triggers',
    cart: cart([sandwich, 2, 549], [chips, 1, 199]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 1, { product: sandwich }), trigger('QUANTITY', 1, { product: water })],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
      }),
    ],
    off: [0, 0],
  },
  {
    name: 'one unit does not meet two triggers',
    cart: cart([cola, 1, 250, drinks], [chips, 1, 199]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 1, { product: cola }), trigger('CATEGORY', 1, { category: drinks })],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
      }),
    ],
    off: [0, 0],
  },
  // CATEGORY
  {
    name: 'different products of a category meet its trigger',
    cart: cart([cola, 1, 250, drinks], [water, 1, 149, drinks], [chips, 1, 199, snacks]),
    deals: [
      deal({
        triggers: [trigger('CATEGORY', 2, { category: drinks })],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
      }),
    ],
    off: [0, 0, 199],
  },
  {
    name: 'a subcategory is a category too, and water is not in it',
    cart: cart([cola, 1, 250, drinks, softDrinks], [water, 1, 149, drinks]),
    deals: [
      deal({
        triggers: [trigger('CATEGORY', 2, { category: softDrinks })],
        rewards: [reward('PERCENT_OFF', 50)],
      }),
    ],
    off: [0, 0],
  },
  // SPEND
  {
    name: 'five off from twenty on',
    cart: cart([sandwich, 4, 549]),
    deals: [deal({ triggers: [trigger('SPEND', 2000)], rewards: [reward('AMOUNT_OFF', 500)] })],
    off: [500],
  },
  {
    name: 'the reward is given once, for any amount above',
    cart: cart([sandwich, 8, 549]),
    deals: [deal({ triggers: [trigger('SPEND', 2000)], rewards: [reward('AMOUNT_OFF', 500)] })],
    off: [500],
  },
  {
    name: 'a cent below the threshold',
    cart: cart([sandwich, 1, 1999]),
    deals: [deal({ triggers: [trigger('SPEND', 2000)], rewards: [reward('AMOUNT_OFF', 500)] })],
    off: [0],
  },
  // FIRST_ORDER
  {
    name: 'a first order has the deal',
    cart: cart([cola, 1, 250]),
    deals: [percentOff(20, { triggers: [trigger('FIRST_ORDER')] })],
    off: [50],
    paidOrders: 0,
  },
  {
    name: 'a second order has no deal',
    cart: cart([cola, 1, 250]),
    deals: [percentOff(20, { triggers: [trigger('FIRST_ORDER')] })],
    off: [0],
    paidOrders: 1,
  },
  // PERCENT_OFF
  {
    name: 'a percentage is rounded down on the group and split by largest remainder',
    cart: cart([cola, 1, 199], [water, 1, 199], [chips, 1, 199]),
    deals: [percentOff(10)],
    off: [20, 20, 19],
  },
  {
    name: 'a percentage of one product',
    cart: cart([cola, 3, 199], [water, 1, 149]),
    deals: [deal({ rewards: [reward('PERCENT_OFF', 10, { product: cola })] })],
    off: [59, 0],
  },
  {
    name: 'the second unit at half price',
    cart: cart([cola, 2, 251]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 2, { product: cola })],
        rewards: [reward('PERCENT_OFF', 50, { product: cola, quantity: 1 })],
      }),
    ],
    off: [125],
  },
  {
    name: 'a hundred percent is a gift, but not of the units that had to be bought',
    cart: cart([cola, 2, 250]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 2, { product: cola })],
        rewards: [reward('PERCENT_OFF', 100, { product: cola, quantity: 1 })],
      }),
    ],
    off: [0],
  },
  // AMOUNT_OFF
  {
    name: 'an amount off a cart is split by value',
    cart: cart([cola, 1, 300], [water, 1, 100]),
    deals: [deal({ rewards: [reward('AMOUNT_OFF', 100)] })],
    off: [75, 25],
  },
  {
    name: 'a discount is never more than the price',
    cart: cart([cola, 1, 300], [water, 1, 100]),
    deals: [deal({ rewards: [reward('AMOUNT_OFF', 500)] })],
    off: [300, 100],
  },
  {
    name: 'an amount off each unit of a product, at most its price',
    cart: cart([cola, 3, 250], [water, 2, 40]),
    deals: [
      deal({
        rewards: [
          reward('AMOUNT_OFF', 50, { product: cola }),
          reward('AMOUNT_OFF', 50, { product: water, quantity: 1 }),
        ],
      }),
    ],
    off: [150, 40],
  },
  {
    name: 'a dollar off every pair',
    cart: cart([cola, 5, 250]),
    deals: [
      deal({ triggers: [trigger('QUANTITY', 2, { product: cola })], rewards: [reward('AMOUNT_OFF', 100)] }),
    ],
    off: [200],
  },
  // FIXED_PRICE
  {
    name: 'colas for a dollar each, and none above its price',
    cart: cart([cola, 2, 250], [water, 1, 80]),
    deals: [
      deal({
        rewards: [
          reward('FIXED_PRICE', 100, { product: cola }),
          reward('FIXED_PRICE', 100, { product: water }),
        ],
      }),
    ],
    off: [300, 0],
  },
  {
    name: 'the whole cart at one price',
    cart: cart([sandwich, 1, 549], [cola, 1, 250]),
    deals: [
      deal({
        triggers: [trigger('QUANTITY', 1, { product: sandwich }), trigger('QUANTITY', 1, { product: cola })],
        rewards: [reward('FIXED_PRICE', 600)],
      }),
    ],
    off: [137, 62],
  },
  // CHEAPEST_FREE
  {
    name: 'the cheapest of three different products is free',
    cart: cart([cola, 1, 250], [water, 1, 149], [sandwich, 1, 549]),
    deals: [
      deal({ triggers: [trigger('QUANTITY', 2)], rewards: [reward('CHEAPEST_FREE', 0, { quantity: 1 })] }),
    ],
    off: [0, 149, 0],
  },
  {
    name: 'the two cheapest of six are free, and without a quantity one each time',
    cart: cart([cola, 2, 250], [water, 2, 149], [chips, 2, 199]),
    deals: [deal({ triggers: [trigger('QUANTITY', 2)], rewards: [reward('CHEAPEST_FREE')] })],
    off: [0, 298, 0],
  },
  // MAXDISCOUNT
  {
    name: 'a cap is split like the discount',
    cart: cart([cola, 1, 300], [water, 1, 100]),
    deals: [percentOff(50, { constraints: { MAXDISCOUNT: '101' } })],
    off: [76, 25],
  },
  // Several deals
  {
    name: 'the better of two deals that do not stack',
    cart: cart([cola, 3, 250]),
    deals: [percentOff(20, { id: 1 }), twoPlusOne(2)],
    off: [250],
    applied: [2],
  },
  {
    name: 'priority does not help a worse deal that does not stack',
    cart: cart([cola, 3, 250]),
    deals: [percentOff(20, { id: 1, priority: 9 }), twoPlusOne(2)],
    off: [250],
    applied: [2],
  },
  {
    name: 'the lower id of two equal deals',
    cart: cart([cola, 2, 250]),
    deals: [percentOff(10, { id: 7 }), percentOff(10, { id: 3 })],
    off: [50],
    applied: [3],
  },
  {
    name: 'stacked deals combine, but not on one unit: the cart deal has the rest',
    cart: cart([cola, 3, 250], [water, 1, 149]),
    deals: [percentOff(10, { id: 1, constraints: stackable }), twoPlusOne(2, stackable)],
    off: [250 + 49, 15],
    applied: [2, 1],
  },
  {
    name: 'a stackable deal does not combine with one that is not',
    cart: cart([cola, 3, 250], [water, 1, 149]),
    deals: [percentOff(10, { id: 1, constraints: stackable }), twoPlusOne(2)],
    off: [250, 0],
    applied: [2],
  },
  {
    name: 'stacked deals may save more than the best single deal',
    cart: cart([cola, 1, 250], [water, 1, 149], [chips, 1, 199]),
    deals: [
      deal({
        id: 1,
        rewards: [reward('AMOUNT_OFF', 60, { product: cola })],
        constraints: stackable,
      }),
      deal({
        id: 2,
        rewards: [reward('AMOUNT_OFF', 60, { product: water })],
        constraints: stackable,
      }),
      percentOff(18, { id: 3 }),
    ],
    off: [60, 60, 0],
    applied: [1, 2],
  },
  {
    name: 'of stacked deals the one with higher priority chooses first',
    cart: cart([cola, 1, 250]),
    deals: [
      deal({ id: 1, rewards: [reward('AMOUNT_OFF', 60, { product: cola })], constraints: stackable }),
      deal({
        id: 2,
        priority: 5,
        rewards: [reward('PERCENT_OFF', 30, { product: cola })],
        constraints: stackable,
      }),
    ],
    off: [75],
    applied: [2],
  },
  {
    name: 'the deal that saves most applies alone if the stack saves less',
    cart: cart([cola, 1, 250]),
    deals: [
      deal({ id: 1, rewards: [reward('AMOUNT_OFF', 60, { product: cola })], constraints: stackable }),
      deal({
        id: 2,
        priority: 5,
        rewards: [reward('PERCENT_OFF', 10, { product: cola })],
        constraints: stackable,
      }),
    ],
    off: [60],
    applied: [1],
  },
  {
    name: 'the units of a trigger may be discounted by another deal',
    cart: cart([cola, 2, 250], [chips, 1, 199]),
    deals: [
      deal({
        id: 1,
        triggers: [trigger('QUANTITY', 2, { product: cola })],
        rewards: [reward('FREE_ITEM', 0, { product: chips, quantity: 1 })],
        constraints: stackable,
      }),
      deal({ id: 2, rewards: [reward('PERCENT_OFF', 10, { product: cola })], constraints: stackable }),
    ],
    off: [50, 199],
    applied: [1, 2],
  },
]

describe('worked examples', () => {
  test.each(examples)(
    'a worked example of deals: $name',
    ({ cart: given, deals, off, applied, paidOrders = null }) => {
      const plan = chooseDeals(deals, given, { paidOrders })
      expect(plan.discounts).toEqual(off)
      expect(plan.saving).toBe(off.reduce((sum, cents) => sum + cents, 0))
      if (applied) expect(plan.applications.map(({ deal: { id } }) => id)).toEqual(applied)
    },
  )
})
