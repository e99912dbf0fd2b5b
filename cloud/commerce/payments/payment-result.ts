import type { z } from 'zod'
import type { PaymentIntentStatus, PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { refusal } from '../processors/reach.ts'

const intentStatus: Record<string, z.infer<typeof PaymentIntentStatus>> = {
  pending: 'processing',
  requires_action: 'requires_action',
  authorized: 'requires_capture',
  completed: 'succeeded',
  failed: 'requires_payment_method',
  canceled: 'canceled',
}

/** A payment as its customer sees it (contract §9). Throws `card_declined` or `payment_failed` where it failed. */
export async function paymentResult(q: Queries, paymentId: number): Promise<PaymentResult> {
  const payment = await q
    .selectFrom('payments')
    .selectAll()
    .where('id', '=', paymentId)
    .executeTakeFirstOrThrow()
  const order = await q
    .selectFrom('orders')
    .selectAll()
    .where('id', '=', payment.order_id)
    .executeTakeFirstOrThrow()
  if (payment.status === 'failed') throw failure(payment)
  return {
    order_id: order.id,
    payment_id: publicId(payment),
    status: intentStatus[payment.status]!,
    payment_status: order.payment_status,
    processing_status: order.processing_status,
    amount: payment.amount,
    client_secret: payment.client_secret,
    next_action: nextAction(payment, order),
    decline_code: payment.decline_code,
  }
}

const publicId = ({ id, processor_ref }: PaymentRow): string => processor_ref ?? `pay_${id}`

function nextAction(payment: PaymentRow, order: OrderRow): PaymentResult['next_action'] {
  if (payment.status !== 'requires_action') return null
  if (payment.processor !== 'external') return { type: 'authenticate', payment_intent_id: publicId(payment) }
  return { type: 'integrator_confirmation', hub_id: order.hub_id, bin_number: order.reserved_bin! }
}

const failure = (payment: PaymentRow): ApiError =>
  payment.decline_code === null
    ? new ApiError('payment_failed', undefined, detailsOf(payment))
    : refusal(payment.decline_code, detailsOf(payment))

const detailsOf = (payment: PaymentRow): ErrorDetails => ({
  order_id: payment.order_id,
  payment_id: publicId(payment),
})
