import { unitShare } from '../catalogue/pricing.ts'
import type { ItemRow, OrderRow } from '../orders/order-rows.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'

/** Money with the tax that is part of it. Cents; `tax` ≤ `amount`. */
export interface Share {
  amount: number
  tax: number
}

/** A line's frozen share of its order, and what of it has gone back. */
export interface LineShare {
  qty: number
  /** Without tax, after all discounts. */
  net: number
  tax: number
  /** Units refunded, and what they returned. */
  refundedUnits: number
  returned: Share
}

/**
 * What the next `units` of a line are worth: the frozen share of all units up to them, less what the line has returned
 * already. In whatever portions and with whatever refusals in between, a line never returns more than it cost.
 */
export function nextUnits({ qty, net, tax, refundedUnits, returned }: LineShare, units: number): Share {
  const upTo = (amount: number): number => unitShare(amount, qty, 0, refundedUnits + units)
  return {
    amount: Math.max(0, upTo(net + tax) - returned.amount),
    tax: Math.max(0, upTo(tax) - returned.tax),
  }
}

/**
 * Takes a share out of what is left of an order: no more than that, and so that the tax left is never more than the money
 * left. The last share takes all the tax.
 */
export function takeShare(left: Share, wanted: Share): Share {
  const amount = Math.min(left.amount, wanted.amount)
  const least = Math.max(0, left.tax - (left.amount - amount))
  return { amount, tax: Math.max(least, Math.min(wanted.tax, left.tax, amount)) }
}

/** An amount of an order as such, with the tax in proportion to what is left. */
export const amountShare = (left: Share, amount: number): Share =>
  takeShare(left, { amount, tax: left.amount === 0 ? 0 : Math.floor((left.tax * amount) / left.amount) })

/**
 * What can still be given back of a payment, by its refunds that have not failed. Late money has no tax in it: its order
 * was never sold.
 */
export function leftOf(
  order: Pick<OrderRow, 'tax_total'>,
  payment: Pick<PaymentRow, 'amount' | 'is_late'>,
  refunds: readonly Share[],
): Share {
  const returned = sumOf(refunds)
  const tax = payment.is_late === 1 ? 0 : (order.tax_total ?? 0)
  // More may be booked than there is, until the processor has refused what it gave back by itself already.
  return { amount: Math.max(0, payment.amount - returned.amount), tax: Math.max(0, tax - returned.tax) }
}

type LineRefund = Share & Pick<RefundRow, 'item_id'>

/** A frozen line, with what its own refunds have returned, of those of its order that have not failed. */
export const lineShareOf = (item: ItemRow, refunds: readonly LineRefund[]): LineShare => ({
  qty: item.qty,
  net: item.net!,
  tax: item.tax!,
  refundedUnits: item.refunded_quantity,
  returned: sumOf(refunds.filter(({ item_id }) => item_id === item.id)),
})

const sumOf = (shares: readonly Share[]): Share =>
  shares.reduce((sum, { amount, tax }) => ({ amount: sum.amount + amount, tax: sum.tax + tax }), {
    amount: 0,
    tax: 0,
  })
