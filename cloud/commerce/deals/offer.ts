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

/** A cart at a hub, and whose it is. */
export interface CartAtHub {
  hub: { id: number; timezone: string }
  shopper: Shopper
  lines: readonly CartLine[]
  /** What thresholds are measured by, where the caller says it; else the lines' sum. */
  total?: number
  /** Orders that the shopper has paid before, where the caller says it. */
  paidOrders?: number | null
  /** The order whose cart it is. */
  orderId?: number
}

/** What is judged and applied, and by which circumstances. */
export interface Offer {
  cart: Cart
  customer: Customer
  circumstances: Circumstances
  judged: { deal: Deal; stored: StoredDeal; obstacle: Obstacle | null }[]
}

/** Judges running deals of a hub for a cart: those that could take something off it, others, or all. */
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
 * The same, with the limits held until the end of the transaction: whoever else wants to use a limited deal of this cart
 * waits, and then counts what this one has used.
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
  // A customer's first orders at two hubs come one after the other, by whichever of the customer's users.
  if (isPersonal)
    await tx
      .forUpdate(
        tx.q.selectFrom('users').select('id').where('id', 'in', first.customer.userIds).orderBy('id'),
      )
      .execute()
  // Always in the same order, so that two carts cannot wait for one another.
  if (limited.length > 0)
    await tx
      .forUpdate(tx.q.selectFrom('deals').select('id').where('id', 'in', limited).orderBy('id'))
      .execute()
  const held = await offerDeals(tx.q, context, at, among)
  const isHeld = ({ id, terms }: Deal): boolean => !isLimited(terms) || limited.includes(id)
  return { ...held, judged: held.judged.filter(({ deal }) => isHeld(deal)) }
}

/** What the eligible deals do to the cart. `among`: only these, where given. */
export function planOf({ cart, circumstances, judged }: Offer, among?: ReadonlySet<number>): Plan {
  const eligible = judged.filter(({ deal, obstacle }) => obstacle === null && (among?.has(deal.id) ?? true))
  return chooseDeals(
    eligible.map(({ deal }) => deal),
    cart,
    circumstances.buyer,
  )
}

/**
 * A cart, or an order that ended before READY: unless something of it has dropped, its customer had nothing of it. What was
 * paid for a cart, or for one that expired, was late, and goes back.
 */
const BROUGHT_NOTHING = [
  OrderStatus.NEW,
  OrderStatus.CANCELLED,
  OrderStatus.TIMED_OUT,
  OrderStatus.FAILED,
  OrderStatus.EXPIRED,
]

/**
 * Orders of a customer, by all users who are the same person. Collected goods count for ever, whatever becomes of the
 * money or the account. Before that, an order counts while it is being paid, or is paid and has brought something. Null
 * where nobody knows; a guest is never known. The count of the caller comes first: an integrator may have sold elsewhere.
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
