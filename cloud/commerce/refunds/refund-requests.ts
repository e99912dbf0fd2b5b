import { upcDigits } from '../../../protocol/model/upc.ts'
import type { CommerceServices } from '../services.ts'
import type { PaymentStatus } from '../../../protocol/contract/fields.ts'
import { ApiError } from '../../platform/api-error.ts'
import { readPaymentStatus, type PaymentRow, type RefundRow } from '../orders/payment-status.ts'
import {
  liveRefunds,
  refundable,
  refundablePayment,
  requirePaid,
  auditRefund,
  insertRefund,
  SERVICE,
  type NewRefund,
} from './refunds.ts'
import { amountShare, lineShareOf, nextUnits, takeShare, type Share } from './shares.ts'
import { isAtHub, lockItems, lockOrderAgain, type ItemRow, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { WantedLine } from '../../../protocol/model/hub-commands.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { enqueue } from '../../gateway/outbox.ts'
import { KEEP_MS } from '../../platform/http/idempotency.ts'
import { executeRefund } from './execute-refund.ts'
import { cancelQueued } from './undelivered.ts'
import { cancelAtHub } from '../orders/cancel-at-hub.ts'
import { orUnavailable } from '../processors/processor.ts'

interface RefundOrderRequest extends RefundRequest {
  /** Cents; the whole remainder if absent. */
  amount?: number | undefined
}

/** Refunds an order, whole or in part (O §4.3). Returns its payment status. Throws `already_refunded`, `invalid_amount`. */
export async function refundOrder(
  services: CommerceServices,
  request: RefundOrderRequest,
): Promise<PaymentStatus> {
  const { amount: wanted } = request
  await requestRefund(services, request, {
    payment: refundablePayment,
    share(_tx, _order, left) {
      if (left.amount === 0) throw new ApiError('already_refunded')
      const amount = wanted ?? left.amount
      if (amount > left.amount)
        throw ApiError.at(['body', 'amount'], 'invalid_amount', { remaining: left.amount })
      return Promise.resolve({ itemId: null, quantity: 0, ...amountShare(left, amount) })
    },
    isSame: (_tx, _order, left, { item_id, amount }) =>
      Promise.resolve(item_id === null && (wanted === undefined ? left.amount === 0 : wanted === amount)),
  })
  return readPaymentStatus(services.context.db.kysely, request.orderId)
}

interface RefundItemRequest extends RefundRequest {
  /** A product's id, or a UPC read as a number. */
  productId: number
  /** Units, 1 or more. */
  quantity: number
}

interface RefundedItem {
  paymentStatus: PaymentStatus
  /** Cents, its tax included. */
  amount: number
  /** The order's remaining tax. */
  taxLeft: number
}

/**
 * Refunds units of one line by its frozen share (O §4.3). If amounts of the order were refunded before, at
 * most the remainder is refunded. Throws `product_not_in_order`, `insufficient_quantity`.
 */
export async function refundItem(
  services: CommerceServices,
  request: RefundItemRequest,
): Promise<RefundedItem> {
  const { db } = services.context
  const { productId, quantity } = request
  const refund = await requestRefund(services, request, {
    payment: requirePaid,
    async share(tx, order, left) {
      const item = await requireItem(tx, order, productId)
      const remaining = item.qty - item.refunded_quantity
      if (quantity > remaining)
        throw ApiError.at(['body', 'quantity'], 'insufficient_quantity', { remaining })
      const refunds = await liveRefunds(tx, (await requirePaid(tx, order)).id)
      const share = takeShare(left, nextUnits(lineShareOf(item, refunds), quantity))
      return { itemId: item.id, quantity, ...share }
    },
    async isSame(tx, order, _left, refund) {
      const item = await requireItem(tx, order, productId)
      return refund.item_id === item.id && refund.quantity === quantity
    },
  })
  return db.transact(async (tx) => ({
    paymentStatus: await readPaymentStatus(tx.q, request.orderId),
    amount: refund.amount,
    taxLeft: await taxLeft(tx, request.orderId),
  }))
}

/** Finds the line by product id, else by the UPC under which it was sold. */
async function requireItem(tx: Tx, order: OrderRow, productId: number): Promise<ItemRow> {
  const items = await lockItems(tx, order.id)
  const item =
    items.find((one) => one.product_id === productId) ??
    items.find(({ upc }) => upc === upcDigits(String(productId)))
  if (!item) throw new ApiError('product_not_in_order')
  return item
}

async function taxLeft(tx: Tx, orderId: number): Promise<number> {
  const order = await tx.q
    .selectFrom('orders')
    .select('tax_total')
    .where('id', '=', orderId)
    .executeTakeFirstOrThrow()
  return (await refundable(tx, order, await requirePaid(tx, { id: orderId }))).tax
}

export interface RefundRequest {
  orderId: number
  /** Whether the caller may refund an order. If not, the order counts as not found. */
  mayTouch: (order: OrderRow) => Promise<boolean>
  actor: string
  /**
   * Identifies the request and its parameters. A request repeated within a day continues the refund that it
   * made before.
   */
  requestKey?: string | undefined
}

/** The refund that a caller asks for. */
interface RefundPlan {
  /** The payment that the refund returns. Throws `order_state_conflict` if there is none. */
  payment(tx: Tx, order: OrderRow): Promise<PaymentRow>
  /** Computes the refund from the order's remainder. Throws the error that prevents it. */
  share(tx: Tx, order: OrderRow, left: Share): Promise<PlannedRefund>
  /** Whether an existing refund came from the same request. */
  isSame(tx: Tx, order: OrderRow, left: Share, refund: RefundRow): Promise<boolean>
}
type PlannedRefund = Pick<NewRefund, 'itemId' | 'quantity' | 'amount' | 'tax'>

/**
 * Executes a requested refund (O §4.3) to the source of the money.
 *
 * The service first asks the hub to leave unstarted goods on the shelf, so that no customer gets both goods
 * and money. If nothing of the order remains, that covers the whole order, even if some of it lies in its bin
 * already. Otherwise it covers the refunded units. A hub that cannot be asked gets the change through its
 * stream.
 *
 * Throws `refund_failed` or `processor_unavailable` (the refund is recorded and will be executed).
 */
async function requestRefund(
  services: CommerceServices,
  request: RefundRequest,
  plan: RefundPlan,
): Promise<RefundRow> {
  const { db } = services.context
  const order = await db.kysely
    .selectFrom('orders')
    .selectAll()
    .where('id', '=', request.orderId)
    .executeTakeFirst()
  if (!order || !(await request.mayTouch(order))) throw new ApiError('order_not_found')
  // An earlier refund has already withdrawn its units from the hub.
  const known = await db.transact((tx) => findExisting(tx, services.context, order, request, plan))
  const id = known?.id ?? (await cancelFirst(services, order, request, plan))
  const refund = await orUnavailable(
    executeRefund(services, id ?? (await recordFirst(services, order, request, plan))),
  )
  if (refund.status === 'failed')
    throw new ApiError('refund_failed', undefined, { failure_reason: refund.failure_reason })
  return refund
}

/** Records the refund of an order that must not be cancelled as a whole. */
async function recordFirst(
  services: CommerceServices,
  order: OrderRow,
  request: RefundRequest,
  plan: RefundPlan,
): Promise<number> {
  const { context, commands } = services
  const lines = isAtHub(order) ? await context.db.transact((tx) => linesPlanned(tx, order, plan)) : []
  const asked =
    lines.length > 0 &&
    (await commands.send({
      hubId: order.hub_id,
      body: { name: 'reduce_order', order_id: order.uuid, lines },
      object: `order-${order.id}`,
      actor: request.actor,
    }))
  const reduced = asked && asked.kind === 'executed' ? lines : []
  return context.db.transact((tx) => recordRefund(tx, services, request, plan, reduced))
}

/** The wanted units after a refund, of the lines that it changes. */
async function linesPlanned(tx: Tx, order: OrderRow, plan: RefundPlan): Promise<WantedLine[]> {
  const left = await refundable(tx, order, await plan.payment(tx, order))
  const { itemId, quantity, amount } = await plan.share(tx, order, left)
  const isWhole = amount === left.amount
  return (await lockItems(tx, order.id))
    .filter(({ id }) => isWhole || id === itemId)
    .map((item) => ({
      line_id: item.id,
      wanted: isWhole ? 0 : item.qty - item.refunded_quantity - quantity,
    }))
}

/** `reduced`: the wanted units of its lines that the hub has received, if any. */
async function recordRefund(
  tx: Tx,
  { context }: CommerceServices,
  request: RefundRequest,
  plan: RefundPlan,
  reduced: readonly WantedLine[],
): Promise<number> {
  const order = await lockOrderAgain(tx, request.orderId)
  const known = await findExisting(tx, context, order, request, plan)
  if (known) return known.id
  const payment = await plan.payment(tx, order)
  const left = await refundable(tx, order, payment)
  const planned = await plan.share(tx, order, left)
  const { actor, requestKey = null } = request
  const refund = { ...planned, payment, reason: 'customer', actor, requestKey, runsAtOnce: true } as const
  const { id, item_id } = await insertRefund(tx, context, order, refund)
  if (!isAtHub(order)) return id
  // If all of an order's money is refunded, no unit counts as sold.
  const lines = (await lockItems(tx, order.id))
    .filter((one) => one.id === item_id || planned.amount === left.amount)
    .map((item) => ({ line_id: item.id, wanted: item.qty - item.refunded_quantity }))
  // Another refund of the order may have been recorded while the service waited for the hub.
  const isSent = lines.every(({ line_id, wanted }) =>
    reduced.some((sent) => sent.line_id === line_id && sent.wanted === wanted),
  )
  if (!isSent) await enqueue(tx, order.hub_id, { kind: 'order.reduce', order_id: order.uuid, lines })
  return id
}

/** The refund that an earlier equal request made: the same key, or a request that got no answer. */
const findExisting = async (
  tx: Tx,
  context: CommerceServices['context'],
  order: OrderRow,
  request: RefundRequest,
  plan: RefundPlan,
): Promise<Pick<RefundRow, 'id'> | undefined> =>
  (await repeated(tx, context, request)) ?? (await findUnconfirmed(tx, order, request, plan))

/** The refund that the same request has already made. */
async function repeated(
  tx: Tx,
  { runtime }: CommerceServices['context'],
  { orderId, requestKey }: RefundRequest,
): Promise<Pick<RefundRow, 'id'> | undefined> {
  if (requestKey === undefined) return undefined
  return tx.q
    .selectFrom('refunds')
    .select('id')
    .where('order_id', '=', orderId)
    .where('request_key', '=', requestKey)
    .where('created_at', '>', runtime.clock.now() - KEEP_MS)
    .where('status', '<>', 'failed')
    .executeTakeFirst()
}

/**
 * The unconfirmed refund of an earlier equal request: the processor did not answer, and its outcome is
 * unknown. A repeated request continues it instead of making a second one.
 */
async function findUnconfirmed(
  tx: Tx,
  order: OrderRow,
  { actor }: RefundRequest,
  plan: RefundPlan,
): Promise<RefundRow | undefined> {
  const payment = await plan.payment(tx, order)
  const left = await refundable(tx, order, payment)
  const unconfirmed = await tx.q
    .selectFrom('refunds as r')
    .innerJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 'r.id').on('o.kind', '=', 'refund'),
    )
    .selectAll('r')
    .where('payment_id', '=', payment.id)
    .where('status', '=', 'pending')
    // A refund of the whole order may stem from the order's cancellation by the same owner.
    .where((eb) =>
      eb.or([eb('r.reason', '=', 'customer'), eb('r.reason', '=', 'cancelled').and('r.actor', '=', actor)]),
    )
    .where('o.in_doubt', '=', 1)
    .orderBy('r.id', 'desc')
    .execute()
  for (const refund of unconfirmed) if (await plan.isSame(tx, order, left, refund)) return refund
  return undefined
}

/** The refund that the order's cancellation made; null if the order must not be cancelled, or if it is too late. */
async function cancelFirst(
  services: CommerceServices,
  order: OrderRow,
  request: RefundRequest,
  plan: RefundPlan,
): Promise<number | null> {
  const { context } = services
  const { db } = context
  if (order.processing_status !== OrderStatus.QUEUED) return null
  const takesAll = await db.transact((tx) => leavesNothing(tx, order, plan))
  if (!takesAll) return null
  const cancellation = await cancelAtHub(services, order, request.actor)
  if (cancellation === 'too_late') return null
  return db.transact(async (tx) => {
    const locked = await lockOrderAgain(tx, order.id)
    if (locked.processing_status === OrderStatus.CANCELLED)
      return claimCancellation(tx, context, locked, request)
    if (locked.processing_status !== OrderStatus.QUEUED) return null
    // The owner's decision ends the order, whether or not the hub answered.
    const { actor, requestKey = null } = request
    const refund = await cancelQueued(tx, context, locked, cancellation, { actor, requestKey })
    return refund?.id ?? null
  })
}

/**
 * The hub's own report came first. Its refund belongs to this request, unless another request has claimed it.
 */
async function claimCancellation(
  tx: Tx,
  context: CommerceServices['context'],
  order: OrderRow,
  request: RefundRequest,
): Promise<number | null> {
  const { actor, requestKey = null } = request
  const refund = await tx.q
    .updateTable('refunds')
    .set({ actor, request_key: requestKey })
    .where('order_id', '=', order.id)
    .where('reason', '=', 'cancelled')
    .where('actor', '=', SERVICE)
    .where('status', '<>', 'failed')
    .returningAll()
    .executeTakeFirst()
  if (refund?.status === 'succeeded') await auditRefund(tx, context, order, refund)
  return refund?.id ?? null
}

async function leavesNothing(tx: Tx, order: OrderRow, plan: RefundPlan): Promise<boolean> {
  const payment = await plan.payment(tx, order)
  const left = await refundable(tx, order, payment)
  return (await plan.share(tx, order, left)).amount === left.amount
}
