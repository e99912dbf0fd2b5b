import type { Selectable } from 'kysely'
import type { Tables } from '../../cloud/platform/store/schema.ts'

type Row<T extends keyof Tables> = Selectable<Tables[T]>

/** The books of one hub, from which sales are recounted. */
export interface SalesBooks {
  timezone: string
  orders: readonly Pick<Row<'orders'>, 'id' | 'owner_id' | 'user_id' | 'queued_at'>[]
  items: readonly Pick<
    Row<'order_items'>,
    | 'id'
    | 'order_id'
    | 'product_id'
    | 'qty'
    | 'purchase_price'
    | 'unit_price_original'
    | 'net'
    | 'tax'
    | 'upc'
    | 'name'
    | 'category'
  >[]
  payments: readonly Pick<Row<'payments'>, 'id' | 'order_id' | 'status' | 'is_late' | 'amount'>[]
  refunds: readonly Pick<
    Row<'refunds'>,
    'payment_id' | 'item_id' | 'quantity' | 'amount' | 'tax' | 'status'
  >[]
}

/** A line of a paid order, less its refunds. */
export interface CountedLine {
  orderId: number
  userId: number
  productId: number
  upc: string
  name: string
  category: string
  at: number
  day: string
  hour: string
  units: number
  revenue: number
  cost: number
  discount: number
  tax: number
  refunded: number
  /** Its order was refunded in full. */
  isWhole: boolean
}

/** Recounts every sale from the books, row by row, without the service's own arithmetic. */
export const recountSales = (books: SalesBooks): CountedLine[] =>
  recountPaid(books).filter(({ isWhole }) => !isWhole)

/** The same, with the orders that were refunded in full. */
export function recountPaid({ timezone, orders, items, payments, refunds }: SalesBooks): CountedLine[] {
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
    const isWhole = payment.amount > 0 && sum(own.map(({ amount }) => amount)) >= payment.amount
    const kept = (lines.get(order.id) ?? [])
      .toSorted((a, b) => a.id - b.id)
      .map((item) => {
        const itsRefunds = own.filter(({ item_id }) => item_id === item.id)
        const back = Math.min(item.qty, sum(itsRefunds.map(({ quantity }) => quantity)))
        const units = item.qty - back
        // The Swedish format is ISO's.
        const local = new Date(order.queued_at!).toLocaleString('sv-SE', { timeZone: timezone })
        return {
          orderId: order.id,
          userId: order.user_id,
          productId: item.product_id,
          upc: item.upc!,
          name: item.name!,
          category: item.category!,
          at: order.queued_at!,
          day: local.slice(0, 10),
          hour: local.slice(11, 13),
          units,
          revenue: item.net! - sum(itsRefunds.map(({ amount, tax }) => amount - tax)),
          cost: units * item.purchase_price!,
          discount:
            units * item.unit_price_original! - (item.net! - Math.floor((item.net! * back) / item.qty)),
          tax: item.tax! - sum(itsRefunds.map(({ tax }) => tax)),
          refunded: item.net!,
          isWhole,
        }
      })
    const ofOrder = own.filter(({ item_id }) => item_id === null)
    takeOff(kept, 'revenue', sum(ofOrder.map(({ amount, tax }) => amount - tax)))
    takeOff(kept, 'tax', sum(ofOrder.map(({ tax }) => tax)))
    for (const line of kept) {
      if (isWhole) Object.assign(line, { units: 0, revenue: 0, cost: 0, discount: 0, tax: 0 })
      line.refunded -= line.revenue
    }
    counted.push(...kept)
  }
  return counted
}

/**
 * A refund of a whole order reduces its lines in proportion to their remaining amounts, rounded down per
 * line.
 */
function takeOff(
  lines: Pick<CountedLine, 'revenue' | 'tax'>[],
  field: 'revenue' | 'tax',
  amount: number,
): void {
  const left = lines.map((line) => Math.max(0, line[field]))
  const all = sum(left)
  const upTo = (count: number): number =>
    all === 0
      ? count === lines.length
        ? amount
        : 0
      : Number((BigInt(amount) * BigInt(sum(left.slice(0, count)))) / BigInt(all))
  for (const [index, line] of lines.entries()) line[field] -= upTo(index + 1) - upTo(index)
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

function groupBy<T>(rows: readonly T[], keyOf: (row: T) => number): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const row of rows) groups.set(keyOf(row), [...(groups.get(keyOf(row)) ?? []), row])
  return groups
}
