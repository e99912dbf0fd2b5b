import type { Day } from '../../platform/calendar/days.ts'
import { unitShare } from '../catalogue/pricing.ts'

/**
 * What analytics count (contract §7). All of it is of *paid orders*: those with a payment that was completed in time. Late
 * money never counts; who took the money (card, wallet, integrator) makes no difference.
 *
 * - A sale belongs to the day on which it was paid (`orders.queued_at`), in the hub's time zone, and so does everything
 *   that changes it later: a refund counts against the day of its sale, not against its own. A past day's figures say what
 *   became of what was bought on it.
 * - Revenue is what the lines were frozen at after markdown and deals, without tax, less what went back of it (the
 *   refund's amount without its tax). A refund counts as soon as it is recorded, and no more once the processor refused it.
 * - Units are those paid for less those refunded; cost is the purchase price at the sale times these units.
 * - An order counts as an order, and its user as a customer, whatever was refunded.
 * - A refund that names no line is spread over the order's lines in proportion to what each has left, to the cent, so that
 *   products add up to their hub.
 */
export interface Sale {
  orderId: number
  hubId: number
  userId: number
  day: Day
  /** By line id. */
  lines: SaleLine[]
}

/** `[product id, units, revenue in cents, cost in cents]` */
export type SaleLine = readonly [productId: number, units: number, revenue: number, cost: number]

/** A line of a paid order, as it was frozen. */
export interface SoldLine {
  id: number
  productId: number
  quantity: number
  refundedQuantity: number
  /** Per unit. */
  purchasePrice: number
  net: number
}

/** What goes back of an order's money, without tax: for one of its lines or for none in particular. */
export interface ReturnedMoney {
  lineId: number | null
  amount: number
}

/** What lines count for once refunds are taken off. The lines in order of their ids. */
export function saleLines(lines: readonly SoldLine[], refunds: readonly ReturnedMoney[]): SaleLine[] {
  const back = (lineId: number | null): number =>
    refunds.reduce((sum, refund) => sum + (refund.lineId === lineId ? refund.amount : 0), 0)
  const left = lines.map(({ id, net }) => net - back(id))
  const shares = spread(
    back(null),
    left.map((amount) => Math.max(0, amount)),
  )
  return lines.map(({ productId, quantity, refundedQuantity, purchasePrice }, index) => {
    const units = quantity - refundedQuantity
    return [productId, units, left[index]! - shares[index]!, units * purchasePrice]
  })
}

/** Splits an amount in proportion to weights, exactly; where nothing weighs anything the last one bears it. */
function spread(amount: number, weights: readonly number[]): number[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  if (whole === 0) return weights.map((_, index) => (index === weights.length - 1 ? amount : 0))
  let before = 0
  return weights.map((weight) => {
    const share = unitShare(amount, whole, before, weight)
    before += weight
    return share
  })
}
