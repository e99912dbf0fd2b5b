import type { Updateable } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { allOf, rowUpdate, statement } from '../../platform/store/statement.ts'
import { countSale } from '../analytics/refresh-sales.ts'
import { saveAfterPayment } from '../methods/methods.ts'
import { answerOf, askIntent, type IntentExtra } from '../money/intents.ts'
import { keyOf, MoneyOperations, nameOf, type Change, type Operation } from '../money/operations.ts'
import { linesToQueue, queueOrder, unfreezeOrder, type LineToQueue } from '../orders/checkout.ts'
import { lockOrderAgain, ownerOfMoney, type OrderRow } from '../orders/order-rows.ts'
import {
  booksOf,
  derivePaymentStatus,
  refreshPaymentStatus,
  type Books,
  type PaymentRow,
} from '../orders/payment-status.ts'
import { EXTERNAL, ProcessorUnavailable, type IntentRequest } from '../processors/processor.ts'
import { refundLate } from '../refunds/undelivered.ts'
import type { MoneyServices } from '../services.ts'

const paymentById = statement((q, { id }: { id: number }) =>
  q.selectFrom('payments').select(allOf('payments')).where('id', '=', id),
)
const updatePayment = rowUpdate('payments')

interface PaymentOfOrder extends Books {
  order: OrderRow
  payment: PaymentRow
  lines: readonly LineToQueue[]
}

/**
 * Takes the money for an order: by card, or by an integrator who confirms it. If the order waits for the
 * payment, success sends it to the hub. Any other success is late money and is refunded, even if the customer
 * saw the payment fail.
 */
export const payments = new MoneyOperations<PaymentRow, PaymentOfOrder, IntentExtra>({
  name: 'payment',
  endsUnanswered: true,
  find: findPayment,
  request(services, operation, payment) {
    if (payment.processor !== EXTERNAL)
      return askIntent(services, operation, requestOf(services.context, operation, payment))
    // The service itself ends an integrator's claim.
    return Promise.resolve(operation.goal === 'ended' ? { outcome: 'canceled' } : null)
  },
  async lock(tx, found) {
    // In this order: the payments are read under the order's lock.
    const [order, books, lines] = await Promise.all([
      lockOrderAgain(tx, found.order_id),
      booksOf(tx, found.order_id),
      linesToQueue(tx.q, found),
    ])
    const payment = books.payments.find((one) => one.id === found.id)
    return payment && { order, payment, lines, ...books }
  },
  goalAfter({ goal }, state) {
    if (state === 'succeeded') return 'done'
    // Its customer may have its client secret, and the order does not wait for another card.
    return state === 'declined' ? 'ended' : goal
  },
  apply: applyPayment,
})

/** Reads a payment; undefined if there is none. */
export async function findPayment(q: Queries, id: number): Promise<PaymentRow | undefined> {
  const [payment] = await paymentById(q, { id })
  return payment
}

const requestOf = ({ settings }: CloudContext, operation: Operation, payment: PaymentRow): IntentRequest => ({
  idempotencyKey: keyOf(operation),
  startedAt: payment.created_at,
  amount: payment.amount,
  currency: settings.currency,
  method: payment.method,
  type: payment.type,
  customer: payment.customer_ref,
  saves: payment.saves_method === 1,
  metadata: {
    payment_id: nameOf(operation),
    order_id: payment.order_id,
    ...(payment.order_uuid !== null && { order_uuid: payment.order_uuid }),
    hub_id: payment.hub_id,
  },
})

async function applyPayment(
  tx: Tx,
  context: CloudContext,
  change: Change<PaymentOfOrder, IntentExtra>,
): Promise<void> {
  const { before, operation } = change
  const { order, payment } = change.subject
  const isLive = payment.status === 'pending' || payment.status === 'requires_action'
  const holdsOrder = isLive && order.processing_status === OrderStatus.PENDING_PAYMENT
  const set = (changes: Updateable<Tables['payments']>) => changePayment(tx, context, payment, changes)
  const isGivenUp = change.outcome === 'given_up'
  switch (operation.state) {
    case 'succeeded':
      if (holdsOrder && before.goal === 'done') return sell(tx, context, change)
      await set({ status: 'completed', is_late: 1 })
      if (holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      await refundLate(tx, context, order, payment)
      break
    case 'declined':
    case 'failed':
    case 'canceled':
      if (!isLive && before.given_up_at === null) return
      await set({ status: change.outcome === 'canceled' ? 'canceled' : 'failed' })
      if (holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      break
    case 'unanswered':
    case 'processing':
    case 'requires_action':
      if (!isLive) return
      if (isGivenUp) await set({ status: 'canceled' })
      else if (operation.state === 'requires_action') await set({ status: 'requires_action' })
      if (isGivenUp && holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      break
  }
  if (isGivenUp) logGivenUp(context, payment, operation)
  if (isGivenUp || before.given_up_at !== null) await reportStuck(tx, context, order)
  order.payment_status = await refreshPaymentStatus(tx, order.id)
}

/** Updates the row and the given object. */
function changePayment(
  tx: Tx,
  { runtime }: CloudContext,
  payment: PaymentRow,
  changes: Updateable<Tables['payments']>,
): Promise<void> {
  const changed = { updated_at: runtime.clock.now(), ...changes }
  Object.assign(payment, changed)
  return updatePayment(tx.q, payment.id, changed)
}

/** The order is paid and goes to its hub. */
async function sell(
  tx: Tx,
  context: CloudContext,
  { subject: { order, payment, lines, payments: all, refunds }, extra }: Change<PaymentOfOrder, IntentExtra>,
): Promise<void> {
  const paid = { status: 'completed', confirmed_by_key: extra?.confirmedByKey ?? null } as const
  await Promise.all([
    changePayment(tx, context, payment, paid),
    queueOrder(tx, context, order, derivePaymentStatus(all, refunds), lines),
  ])
  countSale(tx, order.id)
  if (payment.saves_method === 1)
    await saveAfterPayment(tx, context, {
      userId: payment.user_id,
      processor: payment.processor,
      ref: extra?.method ?? payment.method,
    })
}

/** Completes a payment after its customer's action. Throws `ProcessorUnavailable`. */
export async function confirmAtProcessor(
  services: MoneyServices,
  payment: PaymentRow,
  operation: Operation,
): Promise<unknown> {
  const ask = async () => answerOf(await services.processor.confirmIntent(operation.processor_ref!))
  return payments.execute(services, payment, operation, { by: 'caller', ask })
}

/**
 * Ends a payment that its order must not wait for. If the processor cannot be reached, and any money it took
 * would be refunded, the order is free at once. Throws `ProcessorUnavailable` if the order might be paid.
 */
export async function endPayment(
  services: MoneyServices,
  payment: PaymentRow,
  operation: Operation,
): Promise<void> {
  try {
    await payments.execute(services, payment, { ...operation, goal: 'ended' }, { by: 'recovery' })
  } catch (error) {
    const mayBePaid = payment.processor === services.processor.name && operation.goal === 'done'
    if (!(error instanceof ProcessorUnavailable) || mayBePaid) throw error
    await payments.giveUp(services.context, payment, operation)
  }
}

function logGivenUp(
  { log }: CloudContext,
  { id: paymentId, order_id: orderId, amount, processor }: PaymentRow,
  { processor_ref: ref }: Operation,
): void {
  log.error(
    { paymentId, orderId, amount, processor, ref },
    'a payment is stuck: its processor does not report whether it took money (larder payments stuck)',
  )
}

/**
 * Payments that lack the processor's final answer although their orders no longer wait for them, oldest
 * first.
 */
export const stuckPayments = (q: Queries) =>
  q
    .selectFrom('money_operations as o')
    .innerJoin('payments as p', 'p.id', 'o.subject')
    .select(['p.id', 'p.order_id', 'p.processor', 'o.processor_ref', 'p.amount', 'o.given_up_at as stuck_at'])
    .where('o.kind', '=', 'payment')
    .where('o.given_up_at', 'is not', null)
    .orderBy('p.id')

/** Raises or clears the alarm of an order's stuck payments. */
async function reportStuck(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const stuck = await stuckPayments(tx.q)
    .select('p.owner_id')
    .where('p.order_id', '=', order.id)
    .executeTakeFirst()
  const incident = { hubId: order.hub_id, kind: 'payment_stuck', subject: `order ${order.id}` } as const
  if (!stuck) return clearAlarm(tx, context, incident)
  const { id: payment_id, processor, processor_ref, amount, stuck_at } = stuck
  await raiseAlarm(tx, context, {
    ...incident,
    soldBy: ownerOfMoney(order, stuck),
    details: { payment_id, processor, processor_ref, amount },
    since: stuck_at!,
  })
}
