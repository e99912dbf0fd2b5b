import type { Updateable } from 'kysely'
import type { Tables } from '../../platform/store/schema.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import type { CloudContext } from '../../platform/context.ts'
import { countSale } from '../analytics/refresh-sales.ts'
import { queueOrder, unfreezeOrder } from '../orders/checkout.ts'
import { lockOrderAgain, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import { allOf, rowUpdate, statement } from '../../platform/store/statement.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import { refundLate } from '../refunds/undelivered.ts'
import { saveAfterPayment } from '../methods/methods.ts'
import { bookedStatus, refreshPaymentStatus, type PaymentRow } from '../orders/payment-status.ts'
import { sealedSecret, type Intent } from '../processors/processor.ts'

/**
 * What became of a payment: an intent, or the service's or an integrator's own word where no processor has it. `stuck`: the
 * processor has not said for too long, and the order is not to wait for it.
 */
export type PaymentOutcome = { status: Intent['status'] | 'stuck' } & Partial<
  Pick<Intent, 'ref' | 'declineCode' | 'clientSecret' | 'method'>
> & { confirmedByKey?: string }

/**
 * The only place where a payment changes: the answer to `pay`, a confirmation, an event of the processor and the recovery
 * after a crash all come here, in any order and any number (I3). If the order waits for this payment, its success sends the
 * order to the hub. Any other success is late money and is refunded, also if the customer was told that the payment failed.
 * Takes the order's lock.
 */
export async function applyPaymentOutcome(
  tx: Tx,
  context: CloudContext,
  { id, order_id: orderId }: Pick<PaymentRow, 'id' | 'order_id'>,
  outcome: PaymentOutcome,
): Promise<void> {
  // One after the other: the payment is read under the order's lock.
  const [order, [payment]] = await Promise.all([lockOrderAgain(tx, orderId), paymentById(tx.q, { id })])
  if (!payment) throw new Error(`there is no payment ${id}`)
  const came = await apply(tx, context, order, payment, outcome)
  if (came === 'to nothing') return
  if (outcome.status === 'stuck' || payment.stuck_at !== null) await tellOfStuck(tx, context, order)
  if (came === 'to a change') await refreshPaymentStatus(tx, order.id)
}

const paymentById = statement((q, { id }: { id: number }) =>
  q.selectFrom('payments').select(allOf('payments')).where('id', '=', id),
)
const updatePayment = rowUpdate('payments')

/** What has changed: nothing, as most events of a processor say what its answer has said before. */
async function apply(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  payment: PaymentRow,
  outcome: PaymentOutcome,
): Promise<'to nothing' | 'to a change' | 'to a sale'> {
  const known = {
    processor_ref: payment.processor_ref ?? outcome.ref ?? null,
    client_secret: payment.client_secret ?? sealedSecret(context, outcome.clientSecret),
    updated_at: context.runtime.clock.now(),
  }
  const isLive = payment.status === 'pending' || payment.status === 'requires_action'
  /** Its end is still asked for. */
  const isOpen = isLive || payment.stuck_at !== null
  const holdsOrder = isLive && order.processing_status === OrderStatus.PENDING_PAYMENT
  const set = (changes: Updateable<Tables['payments']>) =>
    updatePayment(tx.q, payment.id, { ...known, ...changes })
  switch (outcome.status) {
    case 'succeeded':
      if (payment.status === 'completed') return 'to nothing'
      if (holdsOrder && payment.is_refused === 0) {
        await Promise.all([
          unschedule(tx, 'payment', payment.id),
          set({ status: 'completed', confirmed_by_key: outcome.confirmedByKey ?? null }),
          queueOrder(
            tx,
            context,
            order,
            bookedStatus(tx, order.id).then(({ payment_status }) => payment_status),
          ),
        ])
        countSale(tx, order.id)
        if (payment.saves_method === 1)
          await saveAfterPayment(tx, context, {
            userId: payment.user_id,
            processor: payment.processor,
            ref: outcome.method ?? payment.method,
          })
        return 'to a sale'
      }
      await unschedule(tx, 'payment', payment.id)
      await set({ status: 'completed', is_late: 1, stuck_at: null })
      if (holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      await refundLate(tx, context, order, { ...payment, ...known })
      return 'to a change'
    case 'processing':
      if (isOpen) await set({})
      return isOpen ? 'to a change' : 'to nothing'
    case 'requires_action':
      if (isOpen) await set(payment.status === 'pending' ? { status: 'requires_action' } : {})
      // Its customer has until the hold ends; then the payment is cancelled.
      if (payment.status === 'pending' && payment.is_refused === 0 && payment.hold_until !== null)
        await schedule(tx, 'payment', payment.id, payment.hold_until)
      return isOpen ? 'to a change' : 'to nothing'
    case 'failed':
    case 'canceled':
      if (!isOpen) return 'to nothing'
      // Its customer may have its secret, and could complete it with another card: it is to be ended at the processor.
      if (outcome.status === 'failed' && payment.processor_ref !== null)
        await schedule(tx, 'payment', payment.id, known.updated_at)
      else await unschedule(tx, 'payment', payment.id)
      await set({ status: outcome.status, decline_code: outcome.declineCode ?? null, stuck_at: null })
      if (holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      return 'to a change'
    case 'stuck':
      if (!isLive) return 'to nothing'
      await set({ status: 'canceled', stuck_at: known.updated_at })
      await schedule(tx, 'payment', payment.id, known.updated_at + context.settings.paymentRecheckMs)
      if (holdsOrder) await unfreezeOrder(tx, context, order, 'payment_failed')
      return 'to a change'
  }
}

/** An order has a payment of which nobody says what became. */
async function tellOfStuck(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const stuck = await tx.q
    .selectFrom('payments')
    .select(['id', 'processor', 'processor_ref', 'amount', 'stuck_at'])
    .where('order_id', '=', order.id)
    .where('stuck_at', 'is not', null)
    .orderBy('id')
    .executeTakeFirst()
  const incident = { hubId: order.hub_id, kind: 'payment_stuck', subject: `order ${order.id}` } as const
  if (!stuck) return clearAlarm(tx, context, incident)
  const { id: payment_id, stuck_at, ...details } = stuck
  const soldBy = order.owner_id
  await raiseAlarm(tx, context, {
    ...incident,
    soldBy,
    details: { payment_id, ...details },
    since: stuck_at!,
  })
}
