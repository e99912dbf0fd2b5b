import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import { executeRefund } from '../refunds/refunds.ts'
import { livePayment } from '../payments/pay.ts'
import { ProcessorUnavailable, orUnavailable } from '../processors/processor.ts'
import { endPayment } from '../payments/settle-payment.ts'
import type { CommerceServices } from '../services.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { cancelOrder } from '../refunds/undelivered.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Tx } from '../../platform/store/database.ts'
import { cancelAtHub } from '../orders/cancel-at-hub.ts'
import { removeCart } from '../orders/move-order.ts'
import { lockOrderAgain, lockOwnOrder, type OrderKey, type OrderRow } from '../orders/order-rows.ts'

/** C §4.2: a customer takes an order back. */
export const cancellationHandlers = (services: CommerceServices): Handlers<'consumer.orders.delete'> => ({
  async 'consumer.orders.delete'({ params, credential }) {
    const outcome = await deleteOrder(
      services,
      { userId: params.user_id, orderId: params.order_id },
      credential.actor,
    )
    const message =
      outcome === 'deleted' ? 'The order was deleted.' : 'The order was cancelled and is refunded.'
    return { success: true, order_id: params.order_id, message }
  },
})

/** A payment is given up, or turns out to be paid; then the order goes. */
const ATTEMPTS = 4

/** Removes an unpaid order, or cancels and refunds one that its hub has not begun. */
export async function deleteOrder(
  services: CommerceServices,
  key: OrderKey,
  actor: string,
): Promise<'deleted' | 'cancelled'> {
  const { kind, order } = await discardOrder(services, key)
  return kind === 'deleted' ? kind : cancelPaid(services, order, actor)
}

/**
 * Removes an unpaid order, whose unfinished payment is cancelled first. One that is paid and waits for its hub is left as
 * it is; throws `order_in_progress` and `order_not_deletable` of those beyond.
 */
export async function discardOrder(
  services: CommerceServices,
  key: OrderKey,
): Promise<{ kind: 'deleted'; order?: never } | { kind: 'paid'; order: OrderRow }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const step = await services.context.db.transact((tx) => discard(tx, services, key))
    if (step.kind !== 'unfinished') return step
    // The processor may answer that it is paid by now: the order is looked at again.
    await orUnavailable(endPayment(services, step.payment))
  }
  throw new ApiError('order_state_conflict')
}

type Step =
  { kind: 'deleted' } | { kind: 'unfinished'; payment: PaymentRow } | { kind: 'paid'; order: OrderRow }

async function discard(tx: Tx, { context }: CommerceServices, key: OrderKey): Promise<Step> {
  const order = await lockOwnOrder(tx, key)
  switch (order.processing_status) {
    case OrderStatus.NEW:
      await removeCart(tx, context, order)
      return { kind: 'deleted' }
    case OrderStatus.PENDING_PAYMENT:
      return { kind: 'unfinished', payment: await livePayment(tx, order.id) }
    case OrderStatus.QUEUED:
      return { kind: 'paid', order }
    case OrderStatus.PREPARING:
    case OrderStatus.READY:
    case OrderStatus.COLLECTING:
      throw new ApiError('order_in_progress')
    case OrderStatus.COMPLETED:
    case OrderStatus.CANCELLED:
    case OrderStatus.TIMED_OUT:
    case OrderStatus.FAILED:
    case OrderStatus.EXPIRED:
      throw new ApiError('order_not_deletable')
  }
}

async function cancelPaid(services: CommerceServices, order: OrderRow, actor: string): Promise<'cancelled'> {
  const cancellation = await cancelAtHub(services, order, actor)
  switch (cancellation) {
    case 'cancelled': {
      const refund = await services.context.db.transact(async (tx) =>
        cancelOrder(tx, services.context, await lockOrderAgain(tx, order.id), { actor, runsAtOnce: true }),
      )
      if (refund) await tryRefund(services, refund.id)
      return 'cancelled'
    }
    case 'too_late':
      throw new ApiError('order_in_progress')
    case 'offline':
      throw new ApiError('hub_offline')
    case 'unknown':
      throw new ApiError('hardware_error', 'The hub did not say whether it cancelled the order.', {
        reason: 'timeout',
        outcome: 'unknown',
      })
  }
}

/** The order is cancelled whether or not the processor can be reached now: if not, the sweep gives the money back. */
async function tryRefund(services: CommerceServices, refundId: number): Promise<void> {
  try {
    await executeRefund(services, refundId)
  } catch (error) {
    if (!(error instanceof ProcessorUnavailable)) throw error
  }
}
