import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { discountedPrice, type PricedOrder, priceOrder } from '../catalogue/pricing.ts'
import type { CloudContext } from '../../platform/context.ts'
import { holdOffer, offerDeals, planOf, type CartAtHub } from '../deals/offer.ts'
import type { Plan } from '../deals/engine/apply-deal.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'
import { readSellingHub, type SellingHub } from './intake.ts'
import type { OrderRow } from './order-rows.ts'

export const cartLines = (q: Queries, orderId: number) => linesOfCart(q, { orderId })

const linesOfCart = statement((q, { orderId }: { orderId: number }) =>
  q
    .selectFrom('order_items as i')
    .innerJoin('products as p', 'p.id', 'i.product_id')
    .innerJoin('categories as c', 'c.id', 'p.category_id')
    .where('i.order_id', '=', orderId)
    .orderBy('i.id')
    .select([
      'i.id',
      'i.product_id',
      'i.qty',
      'p.name',
      'c.name as category',
      'p.upc',
      'p.image_url',
      'p.category_id',
      'p.subcategory_id',
      'p.original_price',
      'p.markdown_percent',
      'p.purchase_price',
    ]),
)
export type CartLine = Awaited<ReturnType<typeof cartLines>>[number]

export interface PricedCart extends PricedOrder {
  plan: Plan
  /** The plan's discounts in the customer's view. */
  deals: Order['deals']
}

/** The present prices of a cart. */
export async function priceCart(
  q: Queries,
  context: CloudContext,
  order: OrderRow,
  lines: readonly CartLine[],
): Promise<PricedCart> {
  const hub = (await readSellingHub(q, order.hub_id))!
  const at = cartAtHub({ order, hub, lines })
  return withPlan(lines, hub.tax_millipercent, planOf(await offerDeals(q, context, at)))
}

/** The same, with the limits of its deals locked until the end of the transaction. */
export async function priceToFreeze(tx: Tx, context: CloudContext, cart: SoldCart): Promise<PricedCart> {
  const plan = planOf(await holdOffer(tx, context, cartAtHub(cart)))
  return withPlan(cart.lines, cart.hub.tax_millipercent, plan)
}

/**
 * A cart that is being paid, with its order and its hub locked, so that two checkouts at one hub cannot use the same
 * free bin.
 */
export interface SoldCart {
  order: OrderRow
  hub: SellingHub
  lines: readonly CartLine[]
}

function cartAtHub({ order, hub, lines }: SoldCart): CartAtHub {
  return {
    hub,
    orderId: order.id,
    shopper: { userId: order.user_id, deviceUuid: null, takesUp: true },
    lines: lines.map((line) => ({
      productId: line.product_id,
      categoryIds: [line.category_id, ...(line.subcategory_id === null ? [] : [line.subcategory_id])],
      quantity: line.qty,
      unitPrice: discountedPrice(line.original_price, line.markdown_percent),
    })),
  }
}

function withPlan(lines: readonly CartLine[], taxMillipercent: number, plan: Plan): PricedCart {
  const priced = priceOrder(
    lines.map((line, index) => ({
      quantity: line.qty,
      originalPrice: line.original_price,
      markdownPercent: line.markdown_percent,
      discount: plan.discounts[index]!,
    })),
    taxMillipercent,
  )
  const deals = plan.applications.map(({ deal, saving }) => ({
    deal_id: deal.id,
    name: deal.name,
    savings: saving,
  }))
  return { ...priced, plan, deals }
}
