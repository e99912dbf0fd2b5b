import { OrderStatus } from '../../protocol/model/order-status.ts'
import { appendAudit } from '../audit/audit.ts'
import { ApiError } from '../http/api-error.ts'
import { cancelAtHub } from '../orders/cancel-at-hub.ts'
import { lockOrder, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../store/database.ts'
import { executeRefund } from './execute-refund.ts'
import type { RefundRow } from './payment-status.ts'
import { insertRefund, paidPayment, refundable } from './refund-rows.ts'
import { orUnavailable } from './settle-payment.ts'
import type { CommerceServices } from './services.ts'

export interface RefundOrderRequest {
  orderId: number
  /** Whether the caller may touch orders of a hub; of others an order is not found. */
  mayTouch: (hubId: number) => Promise<boolean>
  /** Cents; all that remains where absent. */
  amount?: number | undefined
  actor: string
}

/**
 * Refunds an order, whole or in part, to where its money came from (O §4.3). A full refund of an order that its hub has
 * not begun cancels it there first, so that nobody gets goods and money.
 */
export async function refundOrder(
  services: CommerceServices,
  request: RefundOrderRequest,
): Promise<'refunded' | 'partially_refunded'> {
  const { db } = services.context
  const order = await db.kysely
    .selectFrom('orders')
    .selectAll()
    .where('id', '=', request.orderId)
    .executeTakeFirst()
  if (!order || !(await request.mayTouch(order.hub_id))) throw new ApiError('order_not_found')
  const refundId = (await cancelFirst(services, order, request)) ?? (await recordRefund(services, request))
  const refund = await orUnavailable(executeRefund(services, refundId))
  await appendAudit(db.kysely, services.context.runtime, {
    actor: request.actor,
    action: 'orders.refund',
    hubId: order.hub_id,
    object: `order-${order.id}`,
    result: refund.status,
    detail: { refund_id: refund.id, amount: refund.amount },
  })
  if (refund.status === 'failed')
    throw new ApiError('refund_failed', undefined, { failure_reason: refund.failure_reason })
  const { payment_status } = await db.kysely
    .selectFrom('orders')
    .select('payment_status')
    .where('id', '=', order.id)
    .executeTakeFirstOrThrow()
  return payment_status === 'refunded' ? 'refunded' : 'partially_refunded'
}

/** The refund that came of the cancellation, if there was one. */
async function cancelFirst(
  services: CommerceServices,
  order: OrderRow,
  { amount, actor }: RefundOrderRequest,
): Promise<number | null> {
  if (order.processing_status !== OrderStatus.QUEUED) return null
  const rest = await services.context.db.transact((tx) => remaining(tx, order))
  if (amount !== undefined && amount !== rest) return null
  if ((await cancelAtHub(services, order, actor)) !== 'cancelled') return null
  const refund = await services.context.db.kysely
    .selectFrom('refunds')
    .select('id')
    .where('order_id', '=', order.id)
    .where('reason', '=', 'cancelled')
    .orderBy('id', 'desc')
    .executeTakeFirst()
  return refund?.id ?? null
}

async function remaining(tx: Tx, order: OrderRow): Promise<number> {
  const payment = await paidPayment(tx, order.id)
  return payment ? (await refundable(tx, order, payment)).amount : 0
}

async function recordRefund(
  { context }: CommerceServices,
  { orderId, amount }: RefundOrderRequest,
): Promise<RefundRow['id']> {
  const refund = await context.db.transact(async (tx) => {
    const order = (await lockOrder(tx, orderId))!
    const payment = await paidPayment(tx, orderId)
    if (!payment || payment.amount === 0)
      throw new ApiError('order_state_conflict', 'Nothing was paid for this order.')
    const rest = await refundable(tx, order, payment)
    if (rest.amount === 0) throw new ApiError('already_refunded')
    const share = amount ?? rest.amount
    if (share > rest.amount) throw new ApiError('invalid_amount', undefined, { remaining: rest.amount })
    return insertRefund(tx, context, {
      payment,
      itemId: null,
      quantity: 0,
      amount: share,
      tax: Math.floor((rest.tax * share) / rest.amount),
      reason: 'customer',
    })
  })
  return refund.id
}
