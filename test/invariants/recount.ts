import type { Selectable } from 'kysely'
import type { Tables } from '../../cloud/platform/store/schema.ts'

type Row<T extends keyof Tables> = Selectable<Tables[T]>

/** The books of one hub, from which sales are recounted. */
export interface SalesBooks {
  timezone: string
  orders: readonly Pick<Row<'orders'>, 'id' | 'user_id' | 'queued_at'>[]
  items: readonly Pick<
    Row<'order_items'>,
    'id' | 'order_id' | 'product_id' | 'qty' | 'purchase_price' | 'net'
  >[]
  payments: readonly Pick<Row<'payments'>, 'id' | 'order_id' | 'status' | 'is_late' | 'amount'>[]
  refunds: readonly Pick<
    Row<'refunds'>,
    'payment_id' | 'item_id' | 'quantity' | 'amount' | 'tax' | 'status'
  >[]
}

/** A line of a paid order that is not fully refunded, less its refunds. */
export interface CountedLine {
  orderId: number
  userId: number
  productId: number
  at: number
  day: string
  units: number
  revenue: number
  cost: number
}

/** Recounts every sale from the books, row by row, without the service's own arithmetic. */
export function recountSales({ timezone, orders, items, payments, refunds }: SalesBooks): CountedLine[] {
  const lines = groupBy(items, ({ order_id }) => order_id)
  const paidBy = new Map(
    payments
      .filter(({ status, is_late }) => status === 'completed' && is_late === 0)
      .map((p) => [p.order_id, p]),
  )
  const returned = groupBy(
    refunds.filter(({ status }) => status !== 'failed'),
    ({ payment_id }) => payment_id,
  )
  const counted: CountedLine[] = []
  for (const order of orders) {
    const payment = paidBy.get(order.id)
    if (!payment) continue
    const own = returned.get(payment.id) ?? []
    if (payment.amount > 0 && sum(own.map(({ amount }) => amount)) >= payment.amount) continue
    const kept = (lines.get(order.id) ?? [])
      .toSorted((a, b) => a.id - b.id)
      .map((item) => {
        const itsRefunds = own.filter(({ item_id }) => item_id === item.id)
        const back = Math.min(item.qty, sum(itsRefunds.map(({ quantity }) => quantity)))
        const units = item.qty - back
        return {
          orderId: order.id,
          userId: order.user_id,
          productId: item.product_id,
          at: order.queued_at!,
          day: dayOf(order.queued_at!, timezone),
          units,
          revenue: item.net! - sum(itsRefunds.map(({ amount, tax }) => amount - tax)),
          cost: units * item.purchase_price!,
        }
      })
    takeOff(kept, sum(own.filter(({ item_id }) => item_id === null).map(({ amount, tax }) => amount - tax)))
    counted.push(...kept)
  }
  return counted
}

/**
 * A refund of a whole order reduces its lines in proportion to their remaining amounts, rounded down per
 * line.
 */
function takeOff(lines: { revenue: number }[], amount: number): void {
  const left = lines.map(({ revenue }) => Math.max(0, revenue))
  const all = sum(left)
  const upTo = (count: number): number =>
    all === 0
      ? count === lines.length
        ? amount
        : 0
      : Number((BigInt(amount) * BigInt(sum(left.slice(0, count)))) / BigInt(all))
  for (const [index, line] of lines.entries()) line.revenue -= upTo(index + 1) - upTo(index)
}

/** The local date. The Swedish format is ISO's. */
function dayOf(at: number, timeZone: string): string {
  return new Date(at).toLocaleString('sv-SE', { timeZone }).slice(0, 10)
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function groupBy<T>(rows: readonly T[], keyOf: (row: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row])
  return groups
}
