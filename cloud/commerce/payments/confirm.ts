import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { ApiError } from '../../platform/api-error.ts'
import { readOwnOrder, LAST_ACTIVE, lockOrder } from '../orders/order-rows.ts'
import { paymentResult } from './pay.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { savePaidMethods } from '../methods/save-method.ts'
import { askAgain, confirmPaymentIntent, submitForCustomer } from './settle-payment.ts'
import { orUnavailable, EXTERNAL } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { statement } from '../../platform/store/statement.ts'
import { applyPaymentOutcome } from './payment-outcome.ts'

export interface ConfirmRequest {
  userId: number
  orderId: number
  /** `payment_id` of the payment's result. */
  paymentId: string
}

/** Completes a payment after its customer's action; of a finished one it returns the end. */
export async function confirmPayment(
  services: MoneyServices,
  request: ConfirmRequest,
): Promise<PaymentResult> {
  const { kysely } = services.context.db
  await readOwnOrder(kysely, request)
  const payment = await findPayment(services, request)
  if (payment.processor === EXTERNAL && payment.status === 'requires_action')
    throw new ApiError('order_state_conflict', 'The integrator confirms this payment.')
  if (payment.is_refused === 1) await services.context.db.transact((tx) => askAgain(tx, payment))
  if (payment.status === 'requires_action') await orUnavailable(confirmPaymentIntent(services, payment))
  if (payment.status === 'pending') await orUnavailable(submitForCustomer(services, payment))
  if (payment.saves_method === 1) await savePaidMethods(services, request.userId)
  return paymentResult(services.context, payment.id)
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

export interface ExternalConfirmation {
  hubId: number
  bin: number
  /** The public prefix of the API key that vouches for the money, or whatever else names its holder. */
  key: string
}

/**
 * The integrator's word that the order for which this bin is kept is paid: the order goes to the hub. Its id,
 * also when the word is repeated before the bin is filled; null where no order waits for such a word at this bin.
 */
export async function confirmExternal(
  context: CloudContext,
  confirmation: ExternalConfirmation,
): Promise<number | null> {
  const { db } = context
  const [waiting] = await claims(db.kysely, confirmation)
  if (!waiting) return null
  return db.transact(async (tx) => {
    // Looked up again under the lock: the claim may have ended while it was waited for.
    await lockOrder(tx, waiting.order_id)
    const [claim] = await claims(tx.q, confirmation)
    if (claim?.order_id !== waiting.order_id) return null
    await applyPaymentOutcome(tx, context, claim, {
      status: 'succeeded',
      confirmedByKey: confirmation.key,
    })
    return claim.order_id
  })
}

/** The order that a bin is kept for until an integrator has been paid. Asked whenever a bin is to open. */
const claims = statement((q, { hubId, bin }: Pick<ExternalConfirmation, 'hubId' | 'bin'>) =>
  q
    .selectFrom('orders')
    .innerJoin('payments', 'payments.order_id', 'orders.id')
    .select(['payments.id', 'payments.order_id'])
    .where('orders.hub_id', '=', hubId)
    .where('orders.reserved_bin', '=', bin)
    .where('orders.processing_status', '<=', LAST_ACTIVE)
    .where('orders.processing_status', 'in', [
      OrderStatus.PENDING_PAYMENT,
      OrderStatus.QUEUED,
      OrderStatus.PREPARING,
    ])
    .where('payments.processor', '=', EXTERNAL)
    .where('payments.status', 'in', ['requires_action', 'completed'])
    .limit(1),
)
