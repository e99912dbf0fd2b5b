import { addDays } from '../platform/calendar/days.ts'
import { localDay } from '../platform/calendar/zone.ts'
import { toEngine } from '../commerce/deals/deal-rows.ts'
import type { Deal } from '../commerce/deals/engine/deal.ts'
import { dealOf, insertDeal } from '../commerce/deals/write-deals.ts'
import { NewDeal } from '../../protocol/contract/deal-objects.ts'
import type { ConstraintType, RewardType, TriggerType } from '../../protocol/model/deal-terms.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import type { Tx } from '../platform/store/database.ts'
import type { SeededHub } from './hub-data.ts'

/** A deal by the names of products and categories; days from today. */
interface DemoDeal {
  hub: number
  name: string
  description: string
  displayText: string
  priority?: number
  isActive?: boolean
  from?: number
  to?: number
  triggers: readonly { type: TriggerType; quantity?: number; product?: string; category?: string }[]
  reward: { type: RewardType; quantity?: number; product?: string; value?: number }
  constraints?: Partial<Record<ConstraintType, string>>
}

/** Current deals require more than a single unit, so that most orders cost the sum of their products. */
const demoDeals: readonly DemoDeal[] = [
  {
    hub: 1,
    name: 'Chocolate: three for two',
    description: 'Of three bars of milk chocolate one is free.',
    displayText: '3 for 2',
    priority: 10,
    triggers: [{ type: 'QUANTITY', quantity: 2, product: 'Milk Chocolate' }],
    reward: { type: 'FREE_ITEM', quantity: 1, product: 'Milk Chocolate' },
    constraints: { STACKABLE: '1' },
  },
  {
    hub: 1,
    name: 'Salad lunch',
    description: 'With a Caesar salad the orange juice is half the price, from Monday to Friday.',
    displayText: 'Juice at half price',
    priority: 5,
    triggers: [
      { type: 'QUANTITY', quantity: 1, product: 'Caesar Salad' },
      { type: 'QUANTITY', quantity: 1, product: 'Orange Juice' },
    ],
    reward: { type: 'PERCENT_OFF', quantity: 1, product: 'Orange Juice', value: 50 },
    constraints: { STACKABLE: '1', WEEKDAYS: '1,2,3,4,5' },
  },
  {
    hub: 1,
    name: 'Five off forty',
    description: 'Five dollars off from forty dollars on, three times for each customer.',
    displayText: '$5 off',
    from: -30,
    to: 180,
    triggers: [{ type: 'SPEND', quantity: 4000 }],
    reward: { type: 'AMOUNT_OFF', value: 500 },
    constraints: { MAXUSES_USER: '3', MAXUSES: '2000' },
  },
  {
    hub: 1,
    name: 'Coffee for two',
    description: 'Two cold brews for $2.50 each in the late afternoon.',
    displayText: 'Happy hour',
    triggers: [{ type: 'QUANTITY', quantity: 2, product: 'Cold Brew Coffee' }],
    reward: { type: 'FIXED_PRICE', quantity: 2, product: 'Cold Brew Coffee', value: 250 },
    constraints: { TIMEWINDOW: '16:00-19:00' },
  },
  {
    hub: 1,
    name: 'Movie night',
    description: 'With four bags of crisps the cheapest thing in the cart is free.',
    displayText: 'The cheapest is free',
    triggers: [{ type: 'CATEGORY', quantity: 4, category: 'Crisps' }],
    reward: { type: 'CHEAPEST_FREE', quantity: 1 },
    constraints: { MAXDISCOUNT: '300' },
  },
  {
    hub: 1,
    name: 'Sandwich weeks',
    description: 'Ten percent off every cheese sandwich.',
    displayText: '-10%',
    from: -150,
    to: -60,
    triggers: [{ type: 'QUANTITY', quantity: 1, product: 'Cheese Sandwich' }],
    reward: { type: 'PERCENT_OFF', product: 'Cheese Sandwich', value: 10 },
  },
  {
    hub: 1,
    name: 'Umbrella season',
    description: 'Three dollars off an umbrella.',
    displayText: '$3 off',
    from: 60,
    to: 150,
    triggers: [{ type: 'ALWAYS' }],
    reward: { type: 'AMOUNT_OFF', quantity: 1, product: 'Umbrella', value: 300 },
  },
  {
    hub: 1,
    name: 'Welcome',
    description: 'Fifteen percent off a first order.',
    displayText: '-15%',
    isActive: false,
    triggers: [{ type: 'FIRST_ORDER' }],
    reward: { type: 'PERCENT_OFF', value: 15 },
    constraints: { MAXDISCOUNT: '500' },
  },
  {
    hub: 3,
    name: 'Guests’ water',
    description: 'Of four bottles of water one is free.',
    displayText: '4 for 3',
    triggers: [{ type: 'QUANTITY', quantity: 3, product: 'Still Water 500 ml' }],
    reward: { type: 'FREE_ITEM', quantity: 1, product: 'Still Water 500 ml' },
  },
]

/** Creates the deals of a hub; returns them in the deal engine's format. */
export async function insertDeals(tx: Tx, runtime: Runtime, { hub, products }: SeededHub): Promise<Deal[]> {
  const today = localDay(hub.timezone, runtime.clock.now())
  const dayOf = (days: number | undefined) => (days === undefined ? null : addDays(today, days))
  const idOf = (name: string | undefined) =>
    name === undefined ? null : products.find((product) => product.name === name)!.id
  const deals: Deal[] = []
  for (const deal of demoDeals.filter(({ hub: id }) => id === hub.id)) {
    const { product, value, ...reward } = deal.reward
    const body = NewDeal.parse({
      hub_id: hub.id,
      name: deal.name,
      description: deal.description,
      display_text: deal.displayText,
      priority: deal.priority,
      is_deal_active: deal.isActive,
      start: dayOf(deal.from),
      end: dayOf(deal.to),
      triggers: deal.triggers.map(({ product: name, ...trigger }) => ({
        ...trigger,
        product_id: idOf(name),
      })),
      rewards: [{ ...reward, product_id: idOf(product), discount_pct_or_price: value }],
      constraints: Object.entries(deal.constraints ?? {}).map(([type, text]) => ({ type, value: text })),
    })
    deals.push(toEngine(await insertDeal(tx, runtime, dealOf(body, 'demo'))))
  }
  return deals
}
