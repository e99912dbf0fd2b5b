import type { CloudSettings } from '../../platform/settings/limits.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import { balanceOf, post } from './ledger.ts'

/** C §4.5. */
export const loyaltyHandlers = ({
  db,
  settings,
}: CloudContext): Handlers<'consumer.loyalty.balance' | 'consumer.loyalty.calculate_earnings'> => ({
  async 'consumer.loyalty.balance'({ credential }) {
    const points = await balanceOf(db.kysely, credential.userId, 'points')
    return { loyalty_points: points, points_value_in_cents: pointsValue(points, settings) }
  },
  'consumer.loyalty.calculate_earnings'({ body }) {
    const points = pointsFor(body.order_total_cents, settings.loyaltyCentsPerPoint)
    return Promise.resolve({
      order_total: body.order_total_cents,
      points_to_earn: points,
      points_value: pointsValue(points, settings),
    })
  },
})

/**
 * Points of an order: one for each whole `centsPerPoint` of its subtotal after deals, before tax (C §4.5).
 */
export const pointsFor = (subtotalCents: number, centsPerPoint: number): number =>
  Math.floor(subtotalCents / centsPerPoint)

const pointsValue = (points: number, { loyaltyPointCents }: CloudSettings): number =>
  points * loyaltyPointCents

/**
 * Credits the points of a COMPLETED order, once: they count the money that was paid and not refunded. Call it
 * under the order's lock.
 */
export async function earnPoints(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const { loyaltyCentsPerPoint: rate } = context.settings
  const points = pointsFor(await remainingSubtotal(tx, order), rate)
  await addEntry(tx, context, order, { type: 'earned', amount: points, rate })
}

/**
 * Adjusts an order's points after a refund. The points always match the remaining subtotal, so partial
 * refunds lose nothing to rounding. A refund that fails later restores its points. Call it under the order's
 * lock.
 */
export async function refreshPoints(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const entries = await tx.q
    .selectFrom('ledger_entries')
    .select(['amount', 'type', 'cents_per_point'])
    .where('order_id', '=', order.id)
    .where('account', '=', 'points')
    .execute()
  const earned = entries.find(({ type }) => type === 'earned')
  if (!earned) return
  const rate = earned.cents_per_point!
  const held = entries.reduce((sum, { amount }) => sum + amount, 0)
  const points = pointsFor(await remainingSubtotal(tx, order), rate) - held
  if (points !== 0) await addEntry(tx, context, order, { type: 'refund', amount: points, rate })
}

/**
 * The order's subtotal less its refunds. Unpaid and late-paid orders earn no points. Points never become
 * negative, even if a bank takes back money that was already refunded.
 */
async function remainingSubtotal(tx: Tx, order: OrderRow): Promise<number> {
  const payment = await tx.q
    .selectFrom('payments')
    .select(['id', 'amount'])
    .where('order_id', '=', order.id)
    .where('status', '=', 'completed')
    .where('is_late', '=', 0)
    .executeTakeFirst()
  if (!payment) return 0
  const refunds = await tx.q
    .selectFrom('refunds')
    .select(['amount', 'tax'])
    .where('payment_id', '=', payment.id)
    .where('status', '=', 'succeeded')
    .execute()
  const subtotal = payment.amount - (order.tax_total ?? 0)
  return Math.max(
    0,
    refunds.reduce((left, { amount, tax }) => left - (amount - tax), subtotal),
  )
}

async function addEntry(
  tx: Tx,
  context: CloudContext,
  order: OrderRow,
  { type, amount, rate }: { type: 'earned' | 'refund'; amount: number; rate: number },
): Promise<void> {
  const posted = await post(tx, context, {
    user_id: order.user_id,
    account: 'points',
    type,
    amount,
    order_id: order.id,
    cause: type === 'earned' ? `order ${order.id}` : null,
    cents_per_point: rate,
  })
  if (!posted) throw new Error(`order ${order.id}: more points would be taken back than the user has`)
}
