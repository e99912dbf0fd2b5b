import type { PaymentResult } from '../../protocol/contract/order-objects.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { CloudContext } from '../context.ts'
import { ApiError } from '../http/api-error.ts'
import { freezeOrder, queueOrder } from '../orders/checkout.ts'
import { lockOwnOrder, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../store/database.ts'
import { readBalance, debitPayment } from '../wallet/wallet-ledger.ts'
import { EXTERNAL, WALLET } from './payment-methods.ts'
import { paymentResult } from './payment-result.ts'
import { refreshPaymentStatus, type PaymentRow } from './payment-status.ts'
import { cancelPayment, orUnavailable, submitPayment } from './settle-payment.ts'
import type { MoneyServices } from './services.ts'

export interface WalletPayRequest {
  userId: number
  orderId: number
  expectedTotal?: number | undefined
}

export interface PayRequest extends WalletPayRequest {
  /** A method of the processor, or `external`: an integrator takes the money (contract §5). */
  method: string
}

/**
 * Pays an order: freezes it and records the payment in one transaction, then asks the processor, then applies its answer
 * in another. Whatever interrupts this is taken up by the recovery, under the same key.
 */
export async function pay(services: MoneyServices, request: PayRequest): Promise<PaymentResult> {
  const { processor } = services
  if (request.method !== EXTERNAL && !processor.knowsMethod(request.method))
    throw new ApiError('payment_method_not_found')
  return bringToEnd(services, request)
}

/**
 * Pays an order from its customer's wallet: freezing it, taking the money and sending it to the hub are one transaction.
 * Throws `insufficient_funds`, and what paying by card throws.
 */
export function payFromWallet(services: MoneyServices, request: WalletPayRequest): Promise<PaymentResult> {
  return bringToEnd(services, { ...request, method: WALLET })
}

async function bringToEnd(services: MoneyServices, request: PayRequest): Promise<PaymentResult> {
  const { context } = services
  let begun = await context.db.transact((tx) => begin(tx, services, request))
  if (begun.kind === 'other-method') {
    await orUnavailable(cancelPayment(services, begun.payment))
    begun = await context.db.transact((tx) => begin(tx, services, request))
    if (begun.kind === 'other-method') throw new ApiError('order_state_conflict')
  }
  if (begun.payment.status === 'pending') await orUnavailable(submitPayment(services, begun.payment))
  return paymentResult(context.db.kysely, begun.payment.id)
}

/** `go-on`: a payment to bring to its end or to report. `other-method`: one by another method is unfinished. */
interface Begun {
  kind: 'go-on' | 'other-method'
  payment: PaymentRow
}

async function begin(tx: Tx, { context, processor }: MoneyServices, request: PayRequest): Promise<Begun> {
  const order = await lockOwnOrder(tx, request)
  if (order.processing_status === OrderStatus.PENDING_PAYMENT) {
    const payment = await livePayment(tx, order.id)
    const isSame = payment.method === request.method || payment.status === 'pending'
    return { kind: isSame ? 'go-on' : 'other-method', payment }
  }
  requireUnpaid(order)
  const claim = request.method === EXTERNAL
  const { total } = await freezeOrder(tx, context, order, { claim, expectedTotal: request.expectedTotal })
  const payment = await insertPayment(tx, context, order, {
    method: request.method,
    amount: total,
    ...beginning(total, request.method, processor.name),
  })
  if (payment.processor === WALLET && !(await debitPayment(tx, context, payment)))
    throw new ApiError('insufficient_funds', undefined, {
      balance_cents: await readBalance(tx.q, order.user_id),
      total,
    })
  if (payment.status === 'completed') await queueOrder(tx, context, order)
  await refreshPaymentStatus(tx, order.id)
  return { kind: 'go-on', payment }
}

/** Who has the money, and how far that is when the order is frozen. */
function beginning(
  total: number,
  method: string,
  card: MoneyServices['processor']['name'],
): Pick<PaymentRow, 'processor' | 'status'> {
  if (total === 0) return { processor: 'none', status: 'completed' }
  if (method === EXTERNAL) return { processor: EXTERNAL, status: 'requires_action' }
  if (method === WALLET) return { processor: WALLET, status: 'completed' }
  return { processor: card, status: 'pending' }
}

function requireUnpaid({ processing_status }: OrderRow): void {
  if (processing_status === OrderStatus.NEW) return
  throw new ApiError(processing_status === OrderStatus.EXPIRED ? 'order_not_editable' : 'order_already_paid')
}

/** An order in PENDING_PAYMENT has exactly one unfinished payment (`payments_one_live`). */
export function livePayment(tx: Tx, orderId: number): Promise<PaymentRow> {
  return tx.q
    .selectFrom('payments')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('is_late', '=', 0)
    .where('status', 'in', ['pending', 'requires_action', 'authorized'])
    .executeTakeFirstOrThrow()
}

function insertPayment(
  tx: Tx,
  { runtime }: CloudContext,
  order: OrderRow,
  payment: Pick<PaymentRow, 'processor' | 'method' | 'amount' | 'status'>,
): Promise<PaymentRow> {
  const now = runtime.clock.now()
  return tx.q
    .insertInto('payments')
    .values({
      ...payment,
      order_id: order.id,
      user_id: order.user_id,
      processor_ref: null,
      decline_code: null,
      client_secret: null,
      confirmed_by_key: null,
      is_late: 0,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}
