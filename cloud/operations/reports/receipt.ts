import type { Receipt } from '../../../protocol/contract/receipt.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubsWithContact } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { summarizeHub } from '../hubs/hubs.ts'
import { publicId } from '../../commerce/payments/pay.ts'
import { readOwnOrder, type OrderRow } from '../../commerce/orders/order-rows.ts'
import { receiptPage } from './receipt-page.ts'

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
  const refunds = await readRefunds(q, order.id)
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

/** Refunds of the money that paid the order, oldest first. */
async function readRefunds(q: Queries, orderId: number): Promise<Receipt['refunds']> {
  const rows = await q
    .selectFrom('refunds as r')
    .innerJoin('payments as p', 'p.id', 'r.payment_id')
    .select(['r.amount', 'r.status', 'r.created_at'])
    .where('r.order_id', '=', orderId)
    .where('p.is_late', '=', 0)
    .where('r.amount', '>', 0)
    .orderBy('r.id')
    .execute()
  return rows.map(({ created_at, ...refund }) => ({ ...refund, created_at: timestamp(created_at) }))
}
