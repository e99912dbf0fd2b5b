import type { CloudSettings } from '../../platform/settings/limits.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { OrderRow } from '../orders/order-rows.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'

/**
 * Points of an order: one for each whole `centsPerPoint` of its subtotal after deals, before tax (C §4.5).
 */
export const pointsFor = (subtotalCents: number, centsPerPoint: number): number =>
  Math.floor(subtotalCents / centsPerPoint)

export const pointsValue = (points: number, { loyaltyPointCents }: CloudSettings): number =>
  points * loyaltyPointCents

/**
 * Credits the points of a COMPLETED order, once: they count the money that was paid and not refunded. Call it
 * under the order's lock.
 */
export async function earnPoints(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const { loyaltyCentsPerPoint: rate } = context.settings
  const points = pointsFor(await remainingSubtotal(tx, order), rate)
  await addEntry(tx, context, order, { kind: 'earned', points, rate })
}

/**
 * Adjusts an order's points after a refund. The points always match the remaining subtotal, so partial
 * refunds lose nothing to rounding. A refund that fails later restores its points. Call it under the order's
 * lock.
 */
export async function settlePoints(tx: Tx, context: CloudContext, order: OrderRow): Promise<void> {
  const entries = await tx.q
    .selectFrom('loyalty_entries')
    .select(['points', 'kind', 'cents_per_point'])
    .where('order_id', '=', order.id)
    .execute()
  const earned = entries.find(({ kind }) => kind === 'earned')
  if (!earned) return
  const rate = earned.cents_per_point
  const held = entries.reduce((sum, { points }) => sum + points, 0)
  const points = pointsFor(await remainingSubtotal(tx, order), rate) - held
  if (points !== 0) await addEntry(tx, context, order, { kind: 'refunded', points, rate })
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

interface Entry {
  kind: 'earned' | 'refunded'
  points: number
  rate: number
}

async function addEntry(
  tx: Tx,
  { runtime }: CloudContext,
  order: OrderRow,
  { kind, points, rate }: Entry,
): Promise<void> {
  const now = runtime.clock.now()
  await tx.q
    .insertInto('loyalty_accounts')
    .values({ user_id: order.user_id, points: 0, updated_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const account = await tx.q
    .updateTable('loyalty_accounts')
    .set((eb) => ({ points: eb('points', '+', points), updated_at: now }))
    .where('user_id', '=', order.user_id)
    .returning('points')
    .executeTakeFirstOrThrow()
  await tx.q
    .insertInto('loyalty_entries')
    .values({
      user_id: order.user_id,
      order_id: order.id,
      kind,
      points,
      points_after: account.points,
      cents_per_point: rate,
      created_at: now,
    })
    .execute()
}

/** A user's points; 0 before the first entry. */
export async function readPoints(q: Queries, userId: number): Promise<number> {
  const account = await q
    .selectFrom('loyalty_accounts')
    .select('points')
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return account?.points ?? 0
}
