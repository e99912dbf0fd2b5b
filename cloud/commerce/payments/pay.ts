import { sql } from 'kysely'
import type {
  PaymentMethodType,
  PaymentResult,
  PaymentIntentStatus,
} from '../../../protocol/contract/consumer-payments.ts'
import { countSale } from '../analytics/refresh-sales.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError, type ErrorDetails } from '../../platform/api-error.ts'
import { PAYMENT_UNDER_WAY } from '../../platform/store/tables/payments.ts'
import { changedTotal, freezeCart, linesToQueue, priceForPayment, queueOrder } from '../orders/checkout.ts'
import { intakeOf, lockHubOfOrder } from '../orders/intake.ts'
import { readHubLoad } from '../orders/bin-room.ts'
import { lockOwnOrder, requireCart, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import { nextId } from '../../platform/store/next-id.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { balanceOf, post } from '../ledger/ledger.ts'
import { ensureCustomer, type Customer } from '../methods/customers.ts'
import { saveAfterPayment, savePaidMethods } from '../methods/methods.ts'
import { EXTERNAL, WALLET, openSecret, orUnavailable, refusal } from '../processors/processor.ts'
import { moveOrder } from '../orders/move-order.ts'
import { cartLines } from '../orders/price-cart.ts'
import { derivePaymentStatus, type PaymentRow } from '../orders/payment-status.ts'
import { begin as beginOperation, readOperation, type Operation } from '../money/operations.ts'
import { resume } from '../money/resume.ts'
import { insertPayment, startOf, type NewPayment } from './new-payment.ts'
import { endPayment, payments } from './payment.ts'
import { holdUntil, lockPayer, requireClaimable, requireFewUnpaid, unpaidBounds } from '../orders/unpaid.ts'
import type { MoneyServices } from '../services.ts'
import type { z } from 'zod'

interface WalletPayRequest {
  userId: number
  orderId: number
  expectedTotal?: number | undefined
}

interface PayRequest extends WalletPayRequest {
  /** A method of the processor, or `external`: an integrator takes the money. */
  method: string
  /** The method's type; `card` if absent. For a mobile wallet, `method` is its token. */
  type?: PaymentMethodType
  /** The method is saved after it has paid. */
  saves?: boolean
  /** The caller's network (`networkOf`), if a caller asks. */
  network?: string
}

/** Pays an order: freezes it and records the payment in one transaction, then asks the processor (`commerce/money`). */
export async function pay(services: MoneyServices, request: PayRequest): Promise<PaymentResult> {
  const { processor } = services
  const { method, type = 'card', saves = false } = request
  if (method === EXTERNAL && type === 'card') return executePayment(services, { ...request, from: EXTERNAL })
  if (!processor.knowsMethod(method, type)) throw new ApiError('payment_method_not_found')
  if (!saves) return executePayment(services, { ...request, from: 'processor' })
  const saver = await orUnavailable(ensureCustomer(services, request.userId))
  const result = await executePayment(services, { ...request, from: 'processor', saver })
  await savePaidMethods(services, request.userId)
  return result
}

/**
 * Pays an order from its customer's wallet: one transaction freezes it, takes the money and sends it to the
 * hub. Throws `insufficient_funds` and the errors of a card payment.
 */
export function payFromWallet(services: MoneyServices, request: WalletPayRequest): Promise<PaymentResult> {
  return executePayment(services, { ...request, method: WALLET, from: WALLET })
}

interface Paying extends PayRequest {
  /** The party that takes the money. */
  from: 'processor' | typeof EXTERNAL | typeof WALLET
  /** The customer who gets the method saved after it has paid. */
  saver?: Customer
  /**
   * The time when an earlier payment, which this payment replaces, started to hold the order's stock and
   * bins.
   */
  heldSince?: number
}

async function executePayment(services: MoneyServices, request: Paying): Promise<PaymentResult> {
  const { context } = services
  let started = await context.db.transact((tx) => begin(tx, services, request))
  if (started.kind === 'replace') {
    const { payment: former, operation } = started
    // The order keeps its hold: another payment does not start a second hold.
    const heldSince = former.held_since ?? former.created_at
    await rehearse(services, { ...request, heldSince }, former, operation!)
    await orUnavailable(endPayment(services, former, operation!))
    started = await context.db.transact((tx) => begin(tx, services, { ...request, heldSince }))
    if (started.kind === 'replace') throw new ApiError('order_state_conflict')
  }
  const { payment, operation } = started
  if (payment.status !== 'pending') return paymentResult(context, payment.id)
  const asked = await orUnavailable(payments.execute(services, payment, operation!, { by: 'caller' }))
  if (!asked?.booked) return paymentResult(context, payment.id)
  const { subject } = asked.booked
  return resultOf(context, { ...asked.booked.operation, ...subject.payment }, subject.order)
}

class Rehearsed extends Error {}

/**
 * Throws the error that another payment would meet, and changes nothing. The former payment is ended at its processor only
 * if the new one can replace it.
 */
async function rehearse(
  services: MoneyServices,
  request: Paying,
  former: PaymentRow,
  operation: Operation,
): Promise<void> {
  const { context } = services
  try {
    await context.db.transact(async (tx) => {
      await payments.apply(tx, context, former, operation, { outcome: 'canceled' })
      await begin(tx, services, request)
      throw new Rehearsed()
    })
  } catch (error) {
    if (!(error instanceof Rehearsed)) throw error
  }
}

/**
 * `go-on`: a payment to complete or to report. `replace`: an unfinished payment by another method, or one that was ended and
 * has no time left.
 */
interface StartedPayment {
  kind: 'go-on' | 'replace'
  payment: PaymentRow
  /** Absent if the payment completed at once. */
  operation?: Operation
}

async function begin(
  tx: Tx,
  { context, processor }: MoneyServices,
  request: Paying,
): Promise<StartedPayment> {
  const { from, method, type = 'card', saver, userId } = request
  const isClaim = from === EXTERNAL
  // All locks come first: what they protect is read after them. A wallet payment completes at once and holds nothing
  // unpaid.
  const [order, hub, payer, lines, atHub, id] = await Promise.all([
    lockOwnOrder(tx, request),
    lockHubOfOrder(tx, request.orderId),
    from === WALLET ? undefined : lockPayer(tx, userId),
    cartLines(tx.q, request.orderId),
    readHubLoad(tx.q, { orderId: request.orderId }),
    nextId(tx, 'payments'),
  ])
  if (order.processing_status === OrderStatus.PENDING_PAYMENT) {
    const { payment, operation } = await livePayment(tx, order.id)
    const isSame = payment.method === method && payment.type === type
    const isUnderWay = payment.status === 'pending' && operation.goal === 'done'
    if (!isSame && !isUnderWay) return { kind: 'replace', payment, operation }
    // The customer retries a payment that was reported as failed: it may succeed after all.
    const resumed = await resume(tx, context, operation)
    if (resumed.goal !== 'done') return { kind: 'replace', payment, operation: resumed }
    const changed = changedTotal(order.total!, request.expectedTotal)
    if (changed) throw new ApiError(changed.code, undefined, changed.details)
    return { kind: 'go-on', payment, operation: resumed }
  }
  requireCart(order)
  const unpaid = payer && unpaidBounds(context, payer, request.network)
  const heldSince = request.heldSince ?? context.runtime.clock.now()
  if (isClaim) requireClaimable(hub!, payer!)
  if (payer) requireFewUnpaid(context, payer, order.id, isClaim)
  const cart = { order, hub: hub!, lines }
  const frozen = await priceForPayment(tx, context, cart, intakeOf(context, hub!, atHub), {
    claim: isClaim,
    ...(unpaid && { unpaid }),
    expectedTotal: request.expectedTotal,
    ...(from === 'processor' && { least: processor.leastAmount(context.settings.currency) }),
  })
  const { total } = frozen.priced
  const start = {
    id,
    ...startOf(total, from, processor.name),
    amount: total,
    now: context.runtime.clock.now(),
  }
  // It is the order's only pending or paid payment (`payments_one_live`), and none of it is refunded.
  const payment_status = derivePaymentStatus([{ ...start, is_late: 0 }], [])
  const operation = start.status === 'completed' ? undefined : operationOf(context, start, heldSince)
  const [, payment] = await Promise.all([
    freezeCart(tx, context, frozen),
    insertPayment(tx.q, {
      ...start,
      method,
      type,
      saver: saver?.ref ?? null,
      savingProcessor: processor.name,
      order_id: order.id,
      user_id: userId,
      hub_id: order.hub_id,
      orderUuid: frozen.uuid,
      ownerId: cart.hub.owner_id,
      heldSince,
    }),
    moveOrder(tx, context, order, 'checkout', {
      ...frozen.changes,
      payment_status,
      payer_network: unpaid?.network ?? null,
    }),
    operation && beginOperation(tx, context, operation),
  ])
  if (payment.processor === WALLET) await debitWallet(tx, context, payment)
  if (payment.status === 'completed') {
    await queueOrder(tx, context, order, payment_status, await linesToQueue(tx.q, payment))
    countSale(tx, order.id)
  }
  // There was nothing to pay; the method is saved anyway.
  if (payment.processor === 'none' && payment.saves_method === 1)
    await saveAfterPayment(tx, context, { userId, processor: processor.name, ref: method })
  return operation ? { kind: 'go-on', payment, operation } : { kind: 'go-on', payment }
}

async function debitWallet(
  tx: Tx,
  context: CloudContext,
  { id, user_id, order_id, amount }: PaymentRow,
): Promise<void> {
  const [account, cause] = ['wallet' as const, `payment ${id}`]
  if (await post(tx, context, { user_id, account, type: 'debit', amount: -amount, order_id, cause })) return
  throw new ApiError('insufficient_funds', undefined, {
    balance_cents: await balanceOf(tx.q, user_id, account),
    total: amount,
  })
}

/** The payment's operation, with the time for which the order may wait for it. */
const operationOf = (
  context: CloudContext,
  payment: Pick<NewPayment, 'id' | 'processor' | 'now'>,
  heldSince: number,
): Operation => ({
  kind: 'payment',
  subject: payment.id,
  processor: payment.processor,
  state: payment.processor === EXTERNAL ? 'requires_action' : 'unanswered',
  goal: 'done',
  in_doubt: 0,
  processor_ref: null,
  client_secret: null,
  reason: null,
  give_up_at: holdUntil(context, payment.processor, heldSince),
  given_up_at: null,
  started_at: payment.now,
})

/** An order in PENDING_PAYMENT has exactly one unfinished payment (`payments_one_live`). */
export async function livePayment(
  tx: Tx,
  orderId: number,
): Promise<{ payment: PaymentRow; operation: Operation }> {
  const payment = await tx.q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('is_late', '=', 0)
    .where('status', 'in', PAYMENT_UNDER_WAY)
    .executeTakeFirstOrThrow()
  return { payment, operation: (await readOperation(tx.q, 'payment', payment.id))! }
}

const intentStatus: Record<string, z.infer<typeof PaymentIntentStatus>> = {
  pending: 'processing',
  requires_action: 'requires_action',
  authorized: 'requires_capture',
  completed: 'succeeded',
  failed: 'requires_payment_method',
  canceled: 'canceled',
}

/** A stored payment as its customer sees it. Throws `card_declined` or `payment_failed` if it failed. */
export async function paymentResult(context: CloudContext, paymentId: number): Promise<PaymentResult> {
  const [payment] = await paymentOfOrder(context.db.kysely, { paymentId })
  if (!payment) throw new Error(`there is no payment ${paymentId}`)
  return resultOf(context, payment, payment)
}

type PaidOrder = Pick<OrderRow, 'payment_status' | 'processing_status' | 'hub_id' | 'reserved_bin'>

function resultOf(context: CloudContext, payment: AnsweredPayment, order: PaidOrder): PaymentResult {
  if (payment.status === 'failed') throw failure(payment)
  return {
    order_id: payment.order_id,
    payment_id: publicId(payment),
    // Late money is refunded: the payment has paid nothing.
    status: payment.is_late === 1 ? 'canceled' : intentStatus[payment.status]!,
    payment_status: order.payment_status,
    processing_status: order.processing_status,
    amount: payment.amount,
    client_secret: openSecret(context, payment.client_secret),
    next_action: nextAction(payment, order),
    decline_code: payment.reason,
  }
}

const paymentOfOrder = statement((q, { paymentId }: { paymentId: number }) =>
  q
    .selectFrom('payments')
    .innerJoin('orders as o', 'o.id', 'payments.order_id')
    .leftJoin('money_operations as m', (join) =>
      join.onRef('m.subject', '=', 'payments.id').on('m.kind', '=', sql.lit('payment')),
    )
    .select(allOf('payments').map((column) => `payments.${column}` as const))
    .select(['o.payment_status', 'o.processing_status', 'o.hub_id', 'o.reserved_bin'])
    .select(['m.processor_ref', 'm.client_secret', 'm.reason'])
    .where('payments.id', '=', paymentId),
)

/** A payment with the processor's answer about it. */
type AnsweredPayment = PaymentRow & {
  [K in 'processor_ref' | 'client_secret' | 'reason']: Operation[K] | null
}

/** The id of a payment in answers. */
export const publicId = ({ id, processor_ref }: Pick<AnsweredPayment, 'id' | 'processor_ref'>): string =>
  processor_ref ?? `pay_${id}`

function nextAction(
  payment: AnsweredPayment,
  order: Pick<OrderRow, 'hub_id' | 'reserved_bin'>,
): PaymentResult['next_action'] {
  if (payment.status !== 'requires_action') return null
  if (payment.processor !== EXTERNAL) return { type: 'authenticate', payment_intent_id: publicId(payment) }
  return { type: 'integrator_confirmation', hub_id: order.hub_id, bin_number: order.reserved_bin! }
}

const failure = (payment: AnsweredPayment): ApiError =>
  payment.reason === null
    ? new ApiError('payment_failed', undefined, detailsOf(payment))
    : refusal(payment.reason, detailsOf(payment))

const detailsOf = (payment: AnsweredPayment): ErrorDetails => ({
  order_id: payment.order_id,
  payment_id: publicId(payment),
})
