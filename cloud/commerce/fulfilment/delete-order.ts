import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import { executeRefund } from '../refunds/execute-refund.ts'
import { livePayment } from '../payments/pay.ts'
import { ProcessorUnavailable, orUnavailable } from '../processors/processor.ts'
import { endPayment } from '../payments/payment.ts'
import type { CommerceServices } from '../services.ts'
import { cancelQueued } from '../refunds/undelivered.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Tx } from '../../platform/store/database.ts'
import { cancelAtHub } from '../orders/cancel-at-hub.ts'
import { removeCart } from '../orders/move-order.ts'
import { lockOrderAgain, lockOwnOrder, type OrderKey, type OrderRow } from '../orders/order-rows.ts'

/** C §4.2: a customer deletes or cancels an order. */
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

/** Each attempt either cancels the payment or finds that it succeeded; then the order is deleted. */
const ATTEMPTS = 4

/** Deletes an unpaid order, or cancels and refunds a paid order that its hub has not started. */
export async function deleteOrder(
  services: CommerceServices,
  key: OrderKey,
  actor: string,
): Promise<'deleted' | 'cancelled'> {
  const discarded = await discardOrder(services, key)
  switch (discarded.kind) {
    case 'deleted':
      return 'deleted'
    case 'paid':
      return cancelPaid(services, discarded.order, actor)
    case 'beyond':
      throw new ApiError('order_not_deletable')
  }
}

/** `paid`: QUEUED, and unchanged. `beyond`: its hub has started it, or it has ended. */
type Discarded = { kind: 'deleted' } | { kind: 'paid' | 'beyond'; order: OrderRow }

/** Deletes an unpaid order after its unfinished payment is cancelled; any other order is unchanged. */
export async function discardOrder(services: CommerceServices, key: OrderKey): Promise<Discarded> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const step = await services.context.db.transact((tx) => discard(tx, services, key))
    if (step.kind !== 'unfinished') return step
    // The processor may answer that the payment has succeeded by now: read the order again.
    await orUnavailable(endPayment(services, step.payment, step.operation))
  }
  throw new ApiError('order_state_conflict')
}

type Step = Discarded | ({ kind: 'unfinished' } & Awaited<ReturnType<typeof livePayment>>)

async function discard(tx: Tx, { context }: CommerceServices, key: OrderKey): Promise<Step> {
  const order = await lockOwnOrder(tx, key)
  switch (order.processing_status) {
    case OrderStatus.NEW:
      await removeCart(tx, context, order)
      return { kind: 'deleted' }
    case OrderStatus.PENDING_PAYMENT:
      return { kind: 'unfinished', ...(await livePayment(tx, order.id)) }
    case OrderStatus.QUEUED:
      return { kind: 'paid', order }
    case OrderStatus.PREPARING:
    case OrderStatus.READY:
    case OrderStatus.COLLECTING:
    case OrderStatus.COMPLETED:
    case OrderStatus.CANCELLED:
    case OrderStatus.TIMED_OUT:
    case OrderStatus.FAILED:
    case OrderStatus.EXPIRED:
      return { kind: 'beyond', order }
  }
}

/**
 * Cancels a paid order that its hub has not started. The service asks the hub first. If the hub is silent or
 * offline, the cancellation is stored anyway and reaches the hub through its stream (I12).
 */
async function cancelPaid(services: CommerceServices, order: OrderRow, actor: string): Promise<'cancelled'> {
  const cancellation = await cancelAtHub(services, order, actor)
  if (cancellation === 'too_late') throw started()
  const refund = await services.context.db.transact(async (tx) => {
    const locked = await lockOrderAgain(tx, order.id)
    // The hub's own report may have arrived first: a cancellation is this one, a start precedes this request.
    if (locked.processing_status === OrderStatus.CANCELLED) return undefined
    if (locked.processing_status !== OrderStatus.QUEUED) throw started()
    return cancelQueued(tx, services.context, locked, cancellation, { actor })
  })
  if (refund) await tryRefund(services, refund.id)
  return 'cancelled'
}

const started = (): ApiError =>
  new ApiError('order_state_conflict', 'The hub had already started to prepare the order.')

/**
 * The order is cancelled whether or not the processor can be reached now. If it cannot, due work refunds the
 * money.
 */
async function tryRefund(services: CommerceServices, refundId: number): Promise<void> {
  try {
    await executeRefund(services, refundId)
  } catch (error) {
    if (!(error instanceof ProcessorUnavailable)) throw error
  }
}
