import { OrderStatus } from '../../protocol/model/order-status.ts'
import { addDays, weekdayOf } from '../platform/calendar/days.ts'
import { localDay, startOfDay } from '../platform/calendar/zone.ts'
import { discountedPrice, priceOrder, type PricedOrder } from '../commerce/catalogue/pricing.ts'
import { identityOf } from '../commerce/processors/processor.ts'
import { chooseDeals, type Plan } from '../commerce/deals/engine/apply-deal.ts'
import { totalOf, type Deal } from '../commerce/deals/engine/deal.ts'
import { statusOf } from '../commerce/deals/engine/judge-deal.ts'
import { soldNames } from '../commerce/orders/sold-names.ts'
import type { Tx } from '../platform/store/database.ts'
import type { DemoChance } from './chance.ts'
import { insertMany, type SeededHub, type SeededProduct } from './hub-data.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'

const SATURDAY = 5
const MINUTE = 60_000

export interface PastOptions {
  runtime: Runtime
  seeded: SeededHub
  chance: DemoChance
  now: number
  days: number
  /** Orders on an average weekday. Weekends have half as many, and the number grows over time. */
  perDay: number
  users: readonly number[]
  /** Deals of the hub that ended in the past. */
  deals: readonly Deal[]
  ids: { order: number; item: number }
}

type Row = Record<string, string | number | null>
interface Books {
  orders: Row[]
  items: Row[]
  payments: Row[]
  operations: Row[]
  intents: Row[]
  redemptions: Row[]
  /** The names under which products were sold, by product id. */
  soldNames: ReadonlyMap<number, number>
}

/**
 * Fills the past with completed orders. They were paid by card at the sandbox, so they can be refunded like
 * any other.
 */
export async function insertPastOrders(tx: Tx, options: PastOptions): Promise<void> {
  const { hub, products } = options.seeded
  const names = await soldNames(tx, hub.id, products)
  const soldNameOf = new Map(products.map(({ id }, index) => [id, names[index]!]))
  const books: Books = {
    orders: [],
    items: [],
    payments: [],
    operations: [],
    intents: [],
    redemptions: [],
    soldNames: soldNameOf,
  }
  for (let day = options.days; day >= 1; day -= 1) addDay(books, options, day)
  await insertMany(tx, 'orders', books.orders)
  await insertMany(tx, 'order_items', books.items)
  await insertMany(tx, 'payments', books.payments)
  await insertMany(tx, 'money_operations', books.operations)
  await insertMany(tx, 'sandbox_intents', books.intents)
  await insertMany(tx, 'deal_redemptions', books.redemptions)
}

function addDay(books: Books, options: PastOptions, daysAgo: number): void {
  const { chance, now, days, perDay, seeded } = options
  const { timezone } = seeded.hub
  const day = addDays(localDay(timezone, now), -daysAgo)
  const opening = startOfDay(timezone, day) + 6 * 60 * MINUTE
  const growth = 0.6 + (0.4 * (days - daysAgo)) / days
  const count = Math.round(
    perDay * growth * (weekdayOf(day) >= SATURDAY ? 0.5 : 1) * (0.7 + 0.6 * chance.fraction()),
  )
  const times = Array.from({ length: count }, () => opening + chance.between(0, 17 * 60 * MINUTE))
  for (const at of times.toSorted((a, b) => a - b)) addOrder(books, options, at)
}

function addOrder(books: Books, options: PastOptions, at: number): void {
  const { runtime, seeded, chance, users, ids, deals } = options
  const id = ids.order++
  const userId = chance.pick(users)
  const lines = choose(seeded.products, chance).map((product) => ({
    product,
    quantity: chance.fraction() < 0.8 ? 1 : chance.between(2, 3),
  }))
  const { discounts, applications } = planOf(deals, lines, localDay(seeded.hub.timezone, at))
  const priced = priceOrder(
    lines.map(({ product, quantity }, index) => ({
      quantity,
      originalPrice: product.price,
      markdownPercent: product.markdown,
      discount: discounts[index]!,
    })),
    seeded.hub.taxMillipercent,
  )
  const bins = JSON.stringify([chance.between(1, 4)])
  const paidAt = at + chance.between(1, 6) * MINUTE
  const readyAt = paidAt + chance.between(20, 90) * 1000
  books.orders.push({
    id,
    uuid: uuidv7(runtime),
    user_id: userId,
    hub_id: seeded.hub.id,
    owner_id: seeded.hub.ownerId,
    processing_status: OrderStatus.COMPLETED,
    payment_status: 'completed',
    currency: 'USD',
    total_price_original: priced.totalOriginal,
    total_price_discounted: priced.totalDiscounted,
    tax_total: priced.taxTotal,
    total: priced.total,
    tax_millipercent: seeded.hub.taxMillipercent,
    deals: JSON.stringify(
      applications.map(({ deal, saving }) => ({ deal_id: deal.id, name: deal.name, savings: saving })),
    ),
    version: 7,
    reserved_bin: null,
    open_when_ready: 0,
    bins,
    queued_order: null,
    failure_reason: null,
    created_at: at,
    queued_at: paidAt,
    preparing_at: paidAt + 1000,
    ready_at: readyAt,
    ...collected(readyAt + MINUTE),
  })
  for (const [index, { product, quantity }] of lines.entries())
    books.items.push({
      id: ids.item++,
      order_id: id,
      sold_name_id: books.soldNames.get(product.id)!,
      ...soldItem(product, quantity, priced.lines[index]!),
      bins,
    })
  addPayment(books, seeded.hub, { id, userId, amount: priced.total, at: paidAt })
  for (const { deal, saving } of applications)
    books.redemptions.push({
      deal_id: deal.id,
      order_id: id,
      user_id: userId,
      device_uuid: null,
      discount_amount: saving,
      status: 'completed',
      redeemed_at: paidAt,
      expires_at: null,
    })
}

const collected = (at: number) => ({ collected_at: at, finished_at: at, updated_at: at })

/** An item that was dispensed completely, at its price of that day. */
const soldItem = (product: SeededProduct, quantity: number, price: PricedOrder['lines'][number]) => ({
  product_id: product.id,
  qty: quantity,
  upc: product.upc,
  name: product.name,
  category: product.category,
  image_url: product.image,
  unit_price_original: price.unitPriceOriginal,
  unit_price: price.unitPrice,
  purchase_price: product.cost,
  net: price.net,
  tax: price.tax,
  reserved: 0,
  qty_dropped: quantity,
  qty_doubtful: 0,
  refunded_quantity: 0,
})

/** Applies the deals of a day to an order. */
function planOf(
  deals: readonly Deal[],
  lines: readonly { product: SeededProduct; quantity: number }[],
  day: string,
): Plan {
  const cart = lines.map(({ product, quantity }) => ({
    productId: product.id,
    categoryIds: [],
    quantity,
    unitPrice: discountedPrice(product.price, product.markdown),
  }))
  return chooseDeals(
    deals.filter((deal) => statusOf(deal, day, 0) === 'active'),
    { lines: cart, total: totalOf(cart) },
    { paidOrders: null },
  )
}

function addPayment(
  { payments, operations, intents }: Books,
  hub: SeededHub['hub'],
  { id, userId, amount, at }: { id: number; userId: number; amount: number; at: number },
): void {
  const ref = `pi_demo${String(id).padStart(8, '0')}`
  payments.push({
    id,
    order_id: id,
    hub_id: hub.id,
    owner_id: hub.ownerId,
    user_id: userId,
    processor: 'sandbox',
    method: 'pm_card_visa',
    amount,
    status: 'completed',
    confirmed_by_key: null,
    is_late: 0,
    created_at: at,
    updated_at: at,
  })
  operations.push({
    kind: 'payment',
    subject: id,
    processor: 'sandbox',
    state: 'succeeded',
    processor_ref: ref,
    started_at: at,
  })
  intents.push({
    id: ref,
    idempotency_key: `payment:${identityOf({ id, created_at: at })}`,
    amount,
    refunded: 0,
    method: 'pm_card_visa',
    status: 'succeeded',
    decline_code: null,
    client_secret: `${ref}_secret`,
    metadata: JSON.stringify({ payment_id: identityOf({ id, created_at: at }), order_id: id }),
    created_at: at,
  })
}

/** One to four different products; those at the front of the assortment sell better. */
function choose(products: readonly SeededProduct[], chance: DemoChance): SeededProduct[] {
  const chosen = new Set<SeededProduct>()
  const count = chance.between(1, 4)
  while (chosen.size < count) chosen.add(products[Math.floor(chance.fraction() ** 1.6 * products.length)]!)
  return [...chosen]
}
