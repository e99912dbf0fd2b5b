import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { applyPaymentOutcome, type PaymentOutcome } from './payment-outcome.ts'
import { lockOrder } from '../orders/order-rows.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import {
  identityOf,
  orInDoubt,
  processorBackoff,
  ProcessorUnavailable,
  requireProcessor,
  EXTERNAL,
  type Intent,
  type IntentRequest,
} from '../processors/processor.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import type { MoneyServices } from '../services.ts'

/**
 * Asks the processor what becomes of a payment and applies its answer. The request is the same whenever it is made, under
 * the payment's key: `pay` makes it first, and whoever finds the payment unfinished after a crash makes it again. One that
 * the processor is known to have is asked after.
 */
export async function submitPayment(services: MoneyServices, payment: PaymentRow): Promise<void> {
  const { context, processor } = services
  await askProcessor(services, payment, () =>
    payment.processor_ref !== null
      ? processor.readIntent(payment.processor_ref)
      : processor.createIntent(requestOf(context, payment)),
  )
}

const requestOf = ({ settings }: CloudContext, payment: PaymentRow): IntentRequest => ({
  idempotencyKey: `pay:${identityOf(payment)}`,
  begunAt: payment.created_at,
  amount: payment.amount,
  currency: settings.currency,
  method: payment.method,
  type: payment.type,
  customer: payment.customer_ref,
  saves: payment.saves_method === 1,
  metadata: {
    payment_id: identityOf(payment),
    order_id: payment.order_id,
    ...(payment.order_uuid !== null && { order_uuid: payment.order_uuid }),
    ...(payment.hub_id !== null && { hub_id: payment.hub_id }),
  },
})

/**
 * The same for the customer who asks for it. Where no answer comes the customer is told that the payment has not happened,
 * and that is made true: it is abandoned later, and what was charged goes back, unless the customer asks for it again. Where
 * the processor's event was quicker than its answer, the customer is told what that has said.
 */
export async function submitForCustomer(services: MoneyServices, payment: PaymentRow): Promise<void> {
  try {
    await submitPayment(services, payment)
  } catch (error) {
    const isTold = await services.context.db.transact(async (tx) => {
      // An event may be under way: whoever applies it reads under this lock whether the payment was refused.
      await lockOrder(tx, payment.order_id)
      await tx.q
        .updateTable('payments')
        .set({ is_refused: 1 })
        .where('id', '=', payment.id)
        .where('status', '=', 'pending')
        // Of one that the processor is known to have the customer was told that it is under way.
        .where('processor_ref', 'is', null)
        .execute()
      const found = await tx.q
        .selectFrom('payments')
        .select('status')
        .where('id', '=', payment.id)
        .executeTakeFirst()
      return found !== undefined && found.status !== 'pending'
    })
    if (!isTold) throw error
  }
}

/** Its customer asks again for a payment that was refused: it may happen after all. */
export async function askAgain(tx: Tx, payment: PaymentRow): Promise<void> {
  if (payment.is_refused === 0) return
  await tx.q.updateTable('payments').set({ is_refused: 0 }).where('id', '=', payment.id).execute()
}

export async function confirmPaymentIntent(services: MoneyServices, payment: PaymentRow): Promise<void> {
  await askProcessor(services, payment, () => services.processor.confirmIntent(payment.processor_ref!))
}

/**
 * Gives up a payment that its customer did not finish, or was told not to have made. The processor has the last word: it
 * may have been paid meanwhile. An integrator's claim ends with the service's own word.
 */
async function abandonPayment(services: MoneyServices, payment: PaymentRow): Promise<void> {
  const { context, processor } = services
  if (payment.processor === EXTERNAL) return applyOutcome(context, payment, { status: 'canceled' })
  await askProcessor(services, payment, () =>
    payment.processor_ref === null
      ? processor.abandonIntent(requestOf(context, payment))
      : processor.cancelIntent(payment.processor_ref),
  )
}

/**
 * The same for an order that is not to wait for it. Where the processor cannot be asked, and whatever it took would go
 * back, the order is free at once; throws `ProcessorUnavailable` where it might be paid.
 */
export async function endPayment(services: MoneyServices, payment: PaymentRow): Promise<void> {
  try {
    await abandonPayment(services, payment)
  } catch (error) {
    const mayBePaid = payment.processor === services.processor.name && payment.is_refused === 0
    if (!(error instanceof ProcessorUnavailable) || mayBePaid) throw error
    await giveUp(services.context, payment)
  }
}

/** The order is free, and the money is looked after until the processor has said what became of it. */
async function giveUp(context: CloudContext, payment: PaymentRow): Promise<void> {
  await applyOutcome(context, payment, { status: 'stuck' })
  const { id, order_id: orderId, amount, processor, processor_ref: ref } = payment
  context.log.error(
    { paymentId: id, orderId, amount, processor, ref },
    'a payment is stuck: its processor does not say whether it took money (larder payments stuck)',
  )
}

const applyOutcome = (context: CloudContext, payment: PaymentRow, outcome: PaymentOutcome): Promise<void> =>
  context.db.transact((tx) => applyPaymentOutcome(tx, context, payment, outcome))

async function askProcessor(
  { context, processor }: MoneyServices,
  payment: PaymentRow,
  ask: () => Promise<Intent>,
): Promise<Intent> {
  requireProcessor(processor, payment.processor)
  context.checkpoint('payment.before-processor')
  const intent = await orInDoubt(context, ask())
  context.checkpoint('payment.after-processor')
  await applyOutcome(context, payment, intent)
  return intent
}

/** Payments that were left unfinished: a crash, a processor out of reach, a customer who has gone. */
export const paymentWork = (services: MoneyServices): WorkKinds => ({
  payment: {
    backoff: processorBackoff(services.context),
    look: ({ subject }) => lookAtPayment(services, Number(subject)),
  },
})

/**
 * Asks the processor about a payment whose outcome is unknown, and cancels one that its customer does not finish. When the
 * payment's hold ends, the order is a cart again, whatever the processor answers or does not answer: only a success that the
 * processor reports now still pays the order. Money that arrives later is refunded.
 */
async function lookAtPayment(services: MoneyServices, id: number): Promise<Outcome> {
  const { context } = services
  const { db, runtime, settings } = context
  const find = () => db.kysely.selectFrom('payments').selectAll().where('id', '=', id).executeTakeFirst()
  const payment = await find()
  if (payment?.status === 'failed') return endFailed(services, payment)
  const dueAt = payment && dueAtOf(context, payment)
  if (!payment || dueAt === undefined) return done
  const now = runtime.clock.now()
  if (dueAt > now) return { next: dueAt }
  const isHoldOver = holdEndOf(context, payment) <= now
  const isAwaited = payment.status === 'pending' && payment.is_refused === 0 && !isHoldOver
  try {
    await (isAwaited ? submitPayment(services, payment) : abandonPayment(services, payment))
  } catch (error) {
    if (!(error instanceof ProcessorUnavailable) || payment.stuck_at !== null) throw error
    // A back-off does not prolong the hold.
    if (!isHoldOver) return { next: holdEndOf(context, payment), failure: error }
  }
  let looked = await find()
  if (isHoldOver && looked && isLive(looked)) {
    await giveUp(context, looked)
    looked = await find()
  }
  const next = looked && dueAtOf(context, looked)
  if (next === undefined) return done
  const holdEnd = isHoldOver ? Infinity : holdEndOf(context, payment)
  return { next: Math.min(Math.max(next, now + settings.paymentRecheckMs), holdEnd) }
}

/** Ends a payment that failed at its processor. Its customer may be completing it at this moment. */
async function endFailed(services: MoneyServices, payment: PaymentRow): Promise<Outcome> {
  const { context, processor } = services
  const ref = payment.processor_ref
  if (ref === null) return done
  const { status } = await askProcessor(services, payment, () => processor.cancelIntent(ref))
  const isUnderWay = status === 'processing' || status === 'requires_action'
  return isUnderWay ? { next: context.runtime.clock.now() + context.settings.paymentRecheckMs } : done
}

const isLive = ({ status }: PaymentRow): boolean => status === 'pending' || status === 'requires_action'

/** When a payment stops holding its order's stock and bins. */
const holdEndOf = ({ settings }: CloudContext, payment: PaymentRow): number =>
  payment.hold_until ?? payment.created_at + settings.paymentHoldMs

/** When due work looks at an unfinished payment next; undefined if it has ended. */
export function dueAtOf(context: CloudContext, payment: PaymentRow): number | undefined {
  const recheckAt = payment.updated_at + context.settings.paymentRecheckMs
  if (payment.stuck_at !== null) return recheckAt
  if (!isLive(payment)) return undefined
  const holdEnd = holdEndOf(context, payment)
  const isCustomers = payment.status === 'requires_action' && payment.is_refused === 0
  return isCustomers ? holdEnd : Math.min(recheckAt, holdEnd)
}
