import { unitShare } from '../catalogue/pricing.ts'
import type { ItemRow, OrderRow } from '../orders/order-rows.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'

/** Money, including its tax. Cents; `tax` ≤ `amount`. */
export interface Share {
  amount: number
  tax: number
}

/** A line's frozen share of its order, and its refunds so far. */
interface LineShare {
  qty: number
  /** Without tax, after all discounts. */
  net: number
  tax: number
  /** Units refunded, and the money they returned. */
  refundedUnits: number
  returned: Share
}

/**
 * The value of the next `units` of a line: the frozen share of all units up to them, less the money that the
 * line has returned. A line never returns more than it cost, in any portions and with any refusals in
 * between.
 */
export function nextUnits({ qty, net, tax, refundedUnits, returned }: LineShare, units: number): Share {
  const upTo = (amount: number): number => unitShare(amount, qty, 0, refundedUnits + units)
  return {
    amount: Math.max(0, upTo(net + tax) - returned.amount),
    tax: Math.max(0, upTo(tax) - returned.tax),
  }
}

/**
 * Takes a share from the remainder of an order, at most the remainder. The remaining tax never exceeds the
 * remaining money. The last share takes all the tax.
 */
export function takeShare(left: Share, wanted: Share): Share {
  const amount = Math.min(left.amount, wanted.amount)
  const least = Math.max(0, left.tax - (left.amount - amount))
  return { amount, tax: Math.max(least, Math.min(wanted.tax, left.tax, amount)) }
}

/** An amount of the whole order, with the tax in proportion to the remainder. */
export const amountShare = (left: Share, amount: number): Share =>
  takeShare(left, { amount, tax: left.amount === 0 ? 0 : taxOf(left, amount) })

/** In exact integers, because the product of a large order exceeds the range of exact numbers. */
const taxOf = ({ amount: whole, tax }: Share, amount: number): number =>
  Number((BigInt(tax) * BigInt(amount)) / BigInt(whole))

/**
 * The part of a payment that can still be refunded: the payment less its refunds that have not failed. Late
 * money contains no tax: its order was never sold.
 */
export function leftOf(
  order: Pick<OrderRow, 'tax_total'>,
  payment: Pick<PaymentRow, 'amount' | 'is_late'>,
  refunds: readonly Share[],
): Share {
  const returned = sumOf(refunds)
  const tax = payment.is_late === 1 ? 0 : (order.tax_total ?? 0)
  // Refunds can exceed the payment until the processor refuses money that it has already returned itself.
  return { amount: Math.max(0, payment.amount - returned.amount), tax: Math.max(0, tax - returned.tax) }
}

type LineRefund = Share & Pick<RefundRow, 'item_id'>

/** A frozen line with its returned money, from those refunds of its order that have not failed. */
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
