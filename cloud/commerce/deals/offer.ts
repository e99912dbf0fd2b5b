import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { type Among, runningDeals, toEngine, type StoredDeal } from './deal-rows.ts'
import { chooseDeals, type Plan } from './engine/apply-deal.ts'
import { totalOf, type Cart, type CartLine, type Deal } from './engine/deal.ts'
import {
  asksForFirstOrder,
  type Circumstances,
  hubTime,
  isLimited,
  judgeDeal,
  type Obstacle,
} from './engine/judge-deal.ts'
import { nobody, recognise, type Customer, type Shopper } from './customers.ts'
import { countUses } from './redemptions.ts'

/** A cart at a hub, with its shopper. */
export interface CartAtHub {
  hub: { id: number; timezone: string }
  shopper: Shopper
  lines: readonly CartLine[]
  /** The total for thresholds, if the caller passes it; otherwise the lines' sum. */
  total?: number
  /** Orders that the shopper has paid before, if the caller passes it. */
  paidOrders?: number | null
  /** The order of the cart. */
  orderId?: number
}

/** The judged deals with the cart and the circumstances. */
export interface Offer {
  cart: Cart
  customer: Customer
  circumstances: Circumstances
  judged: { deal: Deal; stored: StoredDeal; obstacle: Obstacle | null }[]
}

/** Judges running deals of a hub for a cart: deals that could discount it, given ones, or all. */
export async function offerDeals(
  q: Queries,
  context: CloudContext,
  at: CartAtHub,
  among: Among | 'all' = at,
): Promise<Offer> {
  const now = context.runtime.clock.now()
  const time = hubTime(at.hub.timezone, now)
  const stored = await runningDeals(q, at.hub.id, time.day, among === 'all' ? undefined : among)
  const deals = stored.map(toEngine)
  const limited = deals.filter(({ terms }) => isLimited(terms))
  const isFirst = deals.some(asksForFirstOrder)
  const customer =
    isFirst || limited.length > 0 ? await recognise(q, context, at.shopper) : { ...nobody, ...at.shopper }
  const paidOrders = isFirst ? await ordersBefore(q, at, customer) : null
  const usesOf = await countUses(q, at.hub.id, limited, customer, now)
  const cart = { lines: at.lines, total: at.total ?? totalOf(at.lines) }
  const circumstances: Circumstances = { time, buyer: { paidOrders }, usesOf }
  const judged = deals.map((deal, index) => ({
    deal,
    stored: stored[index]!,
    obstacle: judgeDeal(deal, cart, circumstances),
  }))
  return { cart, customer, circumstances, judged }
}

/**
 * The same, with the limits locked until the end of the transaction. Another customer of a limited deal waits, and then
 * counts this use.
 */
export async function holdOffer(
  tx: Tx,
  context: CloudContext,
  at: CartAtHub,
  among: Among = at,
): Promise<Offer> {
  const first = await offerDeals(tx.q, context, at, among)
  const wanted = first.judged.filter(({ obstacle }) => obstacle === null).map(({ deal }) => deal)
  const limited = wanted.filter(({ terms }) => isLimited(terms)).map(({ id }) => id)
  const isPersonal = at.shopper.userId !== null && wanted.some(asksForFirstOrder)
  if (limited.length === 0 && !isPersonal) return first
  // Also serialises the first orders of a customer at two hubs, by any of the customer's users.
  if (isPersonal)
    await tx
      .forUpdate(
        tx.q.selectFrom('users').select('id').where('id', 'in', first.customer.userIds).orderBy('id'),
      )
      .execute()
  // In a fixed order, so that two carts cannot deadlock.
  if (limited.length > 0)
    await tx
      .forUpdate(tx.q.selectFrom('deals').select('id').where('id', 'in', limited).orderBy('id'))
      .execute()
  const held = await offerDeals(tx.q, context, at, among)
  const isHeld = ({ id, terms }: Deal): boolean => !isLimited(terms) || limited.includes(id)
  return { ...held, judged: held.judged.filter(({ deal }) => isHeld(deal)) }
}

/** The effect of the eligible deals on the cart. */
export const planOf = (offer: Offer): Plan => planner()(offer)

/**
 * Chooses deals for one cart. Asked again in a transaction, it repeats the choice only if other deals are eligible by
 * then. `among`: only these deals.
 */
export function planner(among?: ReadonlySet<number>): (offer: Offer) => Plan {
  const plans = new Map<string, Plan>()
  return ({ cart, circumstances: { buyer }, judged }) => {
    const eligible = judged.filter(({ deal, obstacle }) => obstacle === null && (among?.has(deal.id) ?? true))
    const key = JSON.stringify([buyer, ...eligible.map(({ stored: { row } }) => [row.id, row.updated_at])])
    const deals = eligible.map(({ deal }) => deal)
    const plan = plans.get(key) ?? chooseDeals(deals, cart, buyer)
    plans.set(key, plan)
    return plan
  }
}

/**
 * Statuses of a cart, or of an order that ended before READY. Unless a unit dropped, the customer got nothing. A
 * payment for such an order came too late and is refunded.
 */
const BROUGHT_NOTHING = [
  OrderStatus.NEW,
  OrderStatus.CANCELLED,
  OrderStatus.TIMED_OUT,
  OrderStatus.FAILED,
  OrderStatus.EXPIRED,
]

/**
 * The orders of a customer, over all users who are the same person. Collected orders count forever, whatever happens to
 * the money or the account. Before that, an order counts while it is being paid, or if it is paid and a unit dropped.
 * Null if it is not known, as for a guest. The caller's number has precedence, because an integrator may sell elsewhere
 * too.
 */
async function ordersBefore(
  q: Queries,
  { paidOrders, orderId }: CartAtHub,
  { userId, userIds, isAnonymous }: Customer,
): Promise<number | null> {
  if (isAnonymous) return null
  if (paidOrders != null) return paidOrders
  if (userId === null) return null
  let orders = q
    .selectFrom('orders')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', 'in', userIds)
    .where((eb) => {
      const hasDropped = eb.exists(
        eb
          .selectFrom('order_items as i')
          .select('i.id')
          .whereRef('i.order_id', '=', 'orders.id')
          .where('i.qty_dropped', '>', 0),
      )
      return eb.or([
        eb('processing_status', '=', OrderStatus.PENDING_PAYMENT),
        eb.and([eb('collected_at', 'is not', null), hasDropped]),
        eb.and([
          eb('payment_status', 'in', ['completed', 'partially_refunded']),
          eb.or([eb('processing_status', 'not in', BROUGHT_NOTHING), hasDropped]),
        ]),
      ])
    })
  if (orderId !== undefined) orders = orders.where('id', '<>', orderId)
  return (await orders.executeTakeFirstOrThrow()).count
}
