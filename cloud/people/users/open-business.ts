import { isEditable, isInProgress, type OrderStatus } from '../../../protocol/model/order-status.ts'
import { openDeposits } from '../../commerce/ledger/deposit.ts'
import { LAST_ACTIVE } from '../../commerce/orders/order-rows.ts'
import type { RefundRow } from '../../commerce/orders/payment-status.ts'
import { isByProcessor, readOwed } from '../../commerce/refunds/owed.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'

/** Everything that is open between the service and a customer. Cents. */
export interface OpenBusiness {
  balance: number
  /** Debt of the customer: a bank took back a deposit that was spent. */
  debt: number
  /** Deposits that may still succeed. */
  pending: number
  /** Refunds that wait for the processor. They reach the card also after the account's end. */
  refunding: number
  /** Refunds that the processor refused: a person must pay them. */
  owed: number
  /** Orders that have not ended, carts too, oldest first. */
  orders: { id: number; processing_status: OrderStatus }[]
}

export async function openBusiness(q: Queries, userId: number): Promise<OpenBusiness> {
  // The wallet last: a credit in between is counted twice rather than missed.
  const orders = await q
    .selectFrom('orders')
    .select(['id', 'processing_status'])
    .where('user_id', '=', userId)
    .where('processing_status', '<=', LAST_ACTIVE)
    .orderBy('id')
    .execute()
  const refunds = await openRefunds(q, userId)
  const pending = await openDeposits(q, userId)
  const wallet = await q
    .selectFrom('ledger_accounts')
    .select(['balance', 'debt'])
    .where('user_id', '=', userId)
    .where('account', '=', 'wallet')
    .executeTakeFirst()
  return { balance: wallet?.balance ?? 0, debt: wallet?.debt ?? 0, pending, ...refunds, orders }
}

async function openRefunds(q: Queries, userId: number): Promise<Pick<OpenBusiness, 'refunding' | 'owed'>> {
  const orders = await q
    .selectFrom('orders')
    .innerJoin('refunds', 'refunds.order_id', 'orders.id')
    .select(['orders.id', 'orders.tax_total'])
    .distinct()
    .where('orders.user_id', '=', userId)
    .where('refunds.status', '<>', 'succeeded')
    .execute()
  const found = await Promise.all(orders.map((order) => readOwed(q, order)))
  const cents = (rows: readonly { amount: number }[]): number =>
    rows.reduce((sum, { amount }) => sum + amount, 0)
  const isWaiting = (refund: RefundRow) => refund.status === 'pending' && !isByProcessor(refund)
  return {
    refunding: cents(found.flatMap(({ refunds }) => refunds.filter(isWaiting))),
    owed: cents(found.flatMap(({ owed }) => owed)),
  }
}

/** Throws `order_in_progress` while a hub must end an order. */
export function requireNoneInProgress({ orders }: Pick<OpenBusiness, 'orders'>): void {
  const held = orders.filter((order) => isInProgress(order.processing_status))
  if (held.length > 0) throw inProgress(held.map(({ id }) => id))
}

export const inProgress = (orderIds: number[]): ApiError =>
  new ApiError('order_in_progress', undefined, { order_ids: orderIds })

/** Throws `wallet_not_empty` if money is open, unless the customer forfeits it. */
export function requireSettled(open: OpenBusiness, { forfeit }: { forfeit: boolean }): void {
  if (forfeit) return
  const { balance, debt, pending, owed } = open
  const details = {
    balance_cents: balance,
    pending_cents: pending,
    ...(owed > 0 && { owed_refund_cents: owed }),
    ...(debt > 0 && { debt_cents: debt }),
  }
  if (debt > 0)
    throw new ApiError(
      'wallet_not_empty',
      'The wallet owes money for a deposit that its bank took back. Pay it with a deposit first.',
      details,
    )
  if (owed > 0)
    throw new ApiError(
      'wallet_not_empty',
      'The processor has refused a refund to this customer, so a person must pay it.',
      details,
    )
  if (balance + pending > 0) throw new ApiError('wallet_not_empty', undefined, details)
}

/**
 * Throws `order_in_progress` if an order of this identity is paid or being paid, and `wallet_not_empty` if its wallet has
 * money or may yet receive some.
 */
export async function requireNothingOpen(q: Queries, identity: string): Promise<void> {
  const user = await q.selectFrom('users').select('id').where('identity', '=', identity).executeTakeFirst()
  if (!user) return
  const open = await openBusiness(q, user.id)
  const unfinished = open.orders.filter((order) => !isEditable(order.processing_status))
  if (unfinished.length > 0) throw inProgress(unfinished.map(({ id }) => id))
  requireSettled({ ...open, owed: 0, debt: 0 }, { forfeit: false })
}
