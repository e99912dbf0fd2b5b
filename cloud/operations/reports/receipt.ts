import type { Receipt } from '../../../protocol/contract/receipt.ts'
import { moneyText } from '../../../protocol/model/money.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubsWithContact } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { summarizeHub } from '../hubs/hubs.ts'
import { readOwed } from '../../commerce/refunds/owed.ts'
import { publicId } from '../../commerce/payments/pay.ts'
import { readOwnOrder, type OrderRow } from '../../commerce/orders/order-rows.ts'
import { escapeHtml } from '../../platform/http/plain-page.ts'

/** The receipt of a paid order, as JSON or as a page. */
export const receiptHandlers = ({ db }: CloudContext): Handlers<'consumer.orders.receipt'> => ({
  async 'consumer.orders.receipt'({ params, wantsOther }) {
    const order = await readOwnOrder(db.kysely, { orderId: params.order_id, userId: params.user_id })
    if (order.queued_at === null)
      throw new ApiError('order_state_conflict', 'The order is not paid: it has no receipt.')
    const receipt = await readReceipt(db.kysely, order, timestamp(order.queued_at))
    return wantsOther ? receiptPage(receipt) : receipt
  },
})

async function readReceipt(q: Queries, order: OrderRow, paidAt: string): Promise<Receipt> {
  const hub = await hubsWithContact(q).where('hubs.id', '=', order.hub_id).executeTakeFirstOrThrow()
  const owner = await q
    .selectFrom('owners')
    .select('name')
    .where('id', '=', order.owner_id!)
    .executeTakeFirstOrThrow()
  const lines = await q
    .selectFrom('order_items')
    .selectAll()
    .where('order_id', '=', order.id)
    .orderBy('id')
    .execute()
  const refunds = await readRefunds(q, order)
  return {
    receipt_number: `${order.hub_id}-${order.id}`,
    order_id: order.id,
    seller: owner.name,
    hub: summarizeHub(hub),
    issued_at: paidAt,
    paid_at: paidAt,
    currency: order.currency,
    items: lines.map((line) => ({
      name: line.name!,
      productUPC: line.upc!,
      qty: line.qty,
      refunded_quantity: line.refunded_quantity,
      unit_price_original: line.unit_price_original!,
      price: line.unit_price!,
      line_total: line.net!,
    })),
    total_price_original: order.total_price_original!,
    discount_total: order.total_price_original! - order.total_price_discounted!,
    tax_rate: (order.tax_millipercent ?? 0) / 1000,
    tax_total: order.tax_total!,
    total: order.total!,
    payments: await readPayments(q, order.id, paidAt),
    refunds,
    refunded_total: refunds.reduce(
      (sum, { status, amount }) => sum + (status === 'succeeded' ? amount : 0),
      0,
    ),
  }
}

async function readPayments(q: Queries, orderId: number, paid_at: string): Promise<Receipt['payments']> {
  const rows = await q
    .selectFrom('payments as p')
    .leftJoin('money_operations as m', (join) =>
      join.on('m.kind', '=', 'payment').onRef('m.subject', '=', 'p.id'),
    )
    .leftJoin('payment_methods as c', (join) =>
      join
        .onRef('c.user_id', '=', 'p.user_id')
        .onRef('c.processor', '=', 'p.processor')
        .onRef('c.ref', '=', 'p.method'),
    )
    .select(['p.id', 'p.processor', 'p.type', 'p.amount', 'm.processor_ref', 'c.brand', 'c.last4'])
    .where('p.order_id', '=', orderId)
    .where('p.status', '=', 'completed')
    .where('p.is_late', '=', 0)
    .where('p.processor', '<>', 'none')
    .execute()
  return rows.map(({ id, processor, processor_ref, type, ...payment }) => ({
    payment_id: publicId({ id, processor_ref }),
    type: processor === 'wallet' || processor === 'external' ? processor : type,
    ...payment,
    paid_at,
  }))
}

/**
 * Refunds of the money that paid the order, oldest first. A failed refund is left out if a later one has taken its place or a
 * person has paid it.
 */
async function readRefunds(
  q: Queries,
  order: Pick<OrderRow, 'id' | 'tax_total'>,
): Promise<Receipt['refunds']> {
  const rows = await q
    .selectFrom('refunds as r')
    .innerJoin('payments as p', 'p.id', 'r.payment_id')
    .select(['r.id', 'r.amount', 'r.status', 'r.created_at'])
    .where('r.order_id', '=', order.id)
    .where('p.is_late', '=', 0)
    .where('r.amount', '>', 0)
    .orderBy('r.id')
    .execute()
  const hasFailed = rows.some(({ status }) => status === 'failed')
  const owed = hasFailed ? (await readOwed(q, order)).owed : []
  return rows
    .filter(({ id, status }) => status !== 'failed' || owed.some((one) => one.id === id))
    .map(({ amount, status, created_at }) => ({ amount, status, created_at: timestamp(created_at) }))
}

/** A receipt as a page to print. */
export function receiptPage(receipt: Receipt): string {
  const money = (amount: number): string => moneyText(amount, receipt.currency)
  const row = (...cells: (string | number)[]): string =>
    `<tr>${cells.map((cell) => `<td>${escapeHtml(String(cell))}</td>`).join('')}</tr>`
  const { hub } = receipt
  const address = [hub.street_address_1, hub.street_address_2, hub.city, hub.state].filter(Boolean).join(', ')
  const number = escapeHtml(receipt.receipt_number)
  const items = receipt.items.map(({ name, qty, price, line_total, refunded_quantity }) =>
    row(
      refunded_quantity > 0 ? `${name} (${refunded_quantity} refunded)` : name,
      qty,
      money(price),
      money(line_total),
    ),
  )
  const payments = receipt.payments.map(({ type, brand, last4, amount }) =>
    row(['Paid:', type, brand, last4].filter(Boolean).join(' '), money(amount)),
  )
  const refunds = receipt.refunds.map(({ status, created_at, amount }) =>
    row(`Refund of ${created_at.slice(0, 10)} (${status})`, money(-amount)),
  )
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Receipt ${number}</title>
</head>
<body>
<h1>Receipt ${number}</h1>
<p>${escapeHtml(receipt.seller)}<br>${escapeHtml(hub.name)}<br>${escapeHtml(address)}<br>${receipt.paid_at}</p>
<table>
<thead><tr><th>Product</th><th>Units</th><th>Price</th><th>Total</th></tr></thead>
<tbody>${items.join('')}</tbody>
</table>
<table>
${row('Discount', money(-receipt.discount_total))}
${row(`Tax (${receipt.tax_rate} %)`, money(receipt.tax_total))}
${row('Total', money(receipt.total))}
${payments.join('')}${refunds.join('')}
</table>
</body>
</html>
`
}
