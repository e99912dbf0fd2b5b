import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { ApiError } from '../../platform/api-error.ts'
import { readOwnOrder } from '../orders/order-rows.ts'
import { paymentResult } from './payment-result.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { savePaidMethods } from '../methods/save-method.ts'
import { confirmPaymentIntent, submitPayment } from './settle-payment.ts'
import { orUnavailable } from '../processors/reach.ts'
import type { MoneyServices } from '../services.ts'

export interface ConfirmRequest {
  userId: number
  orderId: number
  /** `payment_id` of the payment's result. */
  paymentId: string
}

/** Completes a payment after its customer's action; of a finished one it tells the end. */
export async function confirmPayment(
  services: MoneyServices,
  request: ConfirmRequest,
): Promise<PaymentResult> {
  const { kysely } = services.context.db
  await readOwnOrder(kysely, request)
  const payment = await findPayment(services, request)
  if (payment.processor === 'external' && payment.status === 'requires_action')
    throw new ApiError('order_state_conflict', 'The integrator confirms this payment.')
  if (payment.status === 'requires_action') await orUnavailable(confirmPaymentIntent(services, payment))
  if (payment.status === 'pending') await orUnavailable(submitPayment(services, payment))
  if (payment.saves_method === 1) await savePaidMethods(services, request.userId)
  return paymentResult(kysely, payment.id)
}

async function findPayment(
  { context }: MoneyServices,
  { orderId, paymentId }: ConfirmRequest,
): Promise<PaymentRow> {
  const own = /^pay_(\d{1,9})$/.exec(paymentId)
  const payment = await context.db.kysely
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', orderId)
    .where((eb) => (own ? eb('id', '=', Number(own[1])) : eb('processor_ref', '=', paymentId)))
    .executeTakeFirst()
  if (!payment) throw new ApiError('not_found', 'The order has no such payment.')
  return payment
}
