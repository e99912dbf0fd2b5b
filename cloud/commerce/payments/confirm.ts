import type { PaymentResult } from '../../../protocol/contract/consumer-payments.ts'
import { ApiError } from '../../platform/api-error.ts'
import { RESERVING } from '../orders/bin-room.ts'
import { readOwnOrder, lockOrder } from '../orders/order-rows.ts'
import { paymentResult } from './pay.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { savePaidMethods } from '../methods/methods.ts'
import { orUnavailable, EXTERNAL } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { sql } from 'kysely'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import { readOperation, type Operation } from '../money/operations.ts'
import { resume } from '../money/resume.ts'
import { confirmAtProcessor, endPayment, payments } from './payment.ts'

interface ConfirmRequest {
  userId: number
  orderId: number
  /** `payment_id` of the payment's result. */
  paymentId: string
}

/**
 * Completes a payment after its customer's action. Returns the final result if the payment is already
 * finished.
 */
export async function confirmPayment(
  services: MoneyServices,
  request: ConfirmRequest,
): Promise<PaymentResult> {
  const { kysely } = services.context.db
  await readOwnOrder(kysely, request)
  const payment = await requirePayment(services, request)
  if (payment.processor === EXTERNAL && payment.status === 'requires_action')
    throw new ApiError('order_state_conflict', 'The integrator confirms this payment.')
  if (payment.status === 'requires_action' || payment.status === 'pending') {
    const operation = await services.context.db.transact(async (tx) => {
      await lockOrder(tx, payment.order_id)
      const known = (await readOperation(tx.q, 'payment', payment.id))!
      return resume(tx, services.context, known)
    })
    await orUnavailable<unknown>(goOn(services, payment, operation))
  }
  if (payment.saves_method === 1) await savePaidMethods(services, request.userId)
  return paymentResult(services.context, payment.id)
}

function goOn(services: MoneyServices, payment: PaymentRow, operation: Operation): Promise<unknown> {
  // The operator has ended it, for example with the retirement of its hub.
  if (operation.goal === 'ended') return endPayment(services, payment, operation)
  if (payment.status === 'requires_action') return confirmAtProcessor(services, payment, operation)
  return payments.execute(services, payment, operation, { by: 'caller' })
}

async function requirePayment(
  { context }: MoneyServices,
  { orderId, paymentId }: ConfirmRequest,
): Promise<PaymentRow> {
  const own = /^pay_(\d{1,10})$/.exec(paymentId)
  const payment = await context.db.kysely
    .selectFrom('payments as p')
    .leftJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 'p.id').on('o.kind', '=', 'payment'),
    )
    .selectAll('p')
    .where('p.order_id', '=', orderId)
    .where((eb) => (own ? eb('p.id', '=', Number(own[1])) : eb('o.processor_ref', '=', paymentId)))
    .executeTakeFirst()
  if (!payment) throw new ApiError('not_found', 'The order has no such payment.')
  return payment
}

interface ExternalConfirmation {
  hubId: number
  bin: number
  /** The order that reserves the bin. */
  orderId: number
  /** The public prefix of the API key that the integrator used. */
  key: string
  /** The actor and detail for the audit log. */
  audit: { actor: string; detail: Readonly<Record<string, unknown>> }
}

/**
 * An integrator confirms that it took the money for the order that reserves a bin. One transaction sends the
 * order to the hub and writes the key to the audit log. Returns the order's id, also if the confirmation is
 * repeated before the bin is filled; null if the claim has ended.
 */
export async function confirmExternal(
  context: CloudContext,
  confirmation: ExternalConfirmation,
): Promise<number | null> {
  const { hubId, bin, orderId, key, audit } = confirmation
  return context.db.transact(async (tx) => {
    await lockOrder(tx, orderId)
    const [claim] = await claims(tx.q, { hubId, bin, orderId })
    if (!claim) return null
    const extra = { confirmedByKey: key }
    await payments.apply(
      tx,
      context,
      claim,
      { kind: 'payment', subject: claim.id },
      { outcome: 'succeeded', extra },
    )
    await appendAudit(tx.q, context.runtime, {
      actor: audit.actor,
      action: 'controls.open_bin',
      hubId,
      object: `bin-${bin}`,
      result: 'confirmed',
      detail: { ...audit.detail, order_id: orderId, confirmed_by_key: key },
    })
    return orderId
  })
}

/** The external payment of an order that reserves a bin, unless it was ended. */
const claims = statement(
  (q, { hubId, bin, orderId }: Pick<ExternalConfirmation, 'hubId' | 'bin' | 'orderId'>) =>
    q
      .selectFrom('orders')
      .innerJoin('payments', 'payments.order_id', 'orders.id')
      .innerJoin('money_operations as o', (join) =>
        join.onRef('o.subject', '=', 'payments.id').on('o.kind', '=', sql.lit('payment')),
      )
      .select(allOf('payments').map((column) => `payments.${column}` as const))
      .where('orders.id', '=', orderId)
      .where('orders.hub_id', '=', hubId)
      .where('orders.reserved_bin', '=', bin)
      .where(
        'orders.processing_status',
        'in',
        RESERVING.map((status) => sql.lit(status)),
      )
      .where('payments.processor', '=', EXTERNAL)
      .where('payments.status', 'in', ['requires_action', 'completed'])
      .where('o.goal', '=', 'done')
      .limit(1),
)
