import type { Selectable } from 'kysely'
import type { CloudContext } from '../../platform/context.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

export type WalletTransactionRow = Selectable<Tables['wallet_transactions']>

/**
 * The one place where a wallet's balance moves: by one conditional UPDATE, with the entry that says so (I6). Returns the
 * balance after it, or undefined where the wallet does not hold enough.
 */
export async function moveBalance(
  tx: Tx,
  { runtime }: CloudContext,
  { id, user_id, amount }: Pick<WalletTransactionRow, 'id' | 'user_id' | 'amount'>,
): Promise<number | undefined> {
  const now = runtime.clock.now()
  await tx.q
    .insertInto('wallets')
    .values({ user_id, balance: 0, updated_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const wallet = await tx.q
    .updateTable('wallets')
    .set((eb) => ({ balance: eb('balance', '+', amount), updated_at: now }))
    .where('user_id', '=', user_id)
    .where((eb) => eb(eb('balance', '+', amount), '>=', 0))
    .returning('balance')
    .executeTakeFirst()
  if (!wallet) return undefined
  await tx.q
    .insertInto('wallet_entries')
    .values({ transaction_id: id, user_id, amount, balance_after: wallet.balance, created_at: now })
    .execute()
  return wallet.balance
}

/** Takes a payment out of its customer's wallet; false where that does not hold enough, and the caller rolls back. */
export async function debitPayment(tx: Tx, context: CloudContext, payment: PaymentRow): Promise<boolean> {
  const transaction = await insertTransaction(tx, context, {
    user_id: payment.user_id,
    type: 'debit',
    amount: -payment.amount,
    order_id: payment.order_id,
    payment_id: payment.id,
  })
  return (await moveBalance(tx, context, transaction)) !== undefined
}

/** Puts a refund of a wallet payment back where it came from. */
export async function creditRefund(
  tx: Tx,
  context: CloudContext,
  userId: number,
  refund: Pick<RefundRow, 'id' | 'order_id' | 'amount'>,
): Promise<void> {
  const transaction = await insertTransaction(tx, context, {
    user_id: userId,
    type: 'refund',
    amount: refund.amount,
    order_id: refund.order_id,
    refund_id: refund.id,
  })
  await moveBalance(tx, context, transaction)
}

type NewTransaction = Pick<WalletTransactionRow, 'user_id' | 'type' | 'amount'> &
  Partial<WalletTransactionRow>

/** What is not said of it is null; it is completed unless something else is said. */
export function insertTransaction(
  tx: Tx,
  { runtime }: CloudContext,
  transaction: NewTransaction,
): Promise<WalletTransactionRow> {
  const now = runtime.clock.now()
  return tx.q
    .insertInto('wallet_transactions')
    .values({
      status: 'completed',
      ...transaction,
      created_at: now,
      updated_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Cents; 0 before the first entry. */
export async function readBalance(q: Queries, userId: number): Promise<number> {
  const wallet = await q
    .selectFrom('wallets')
    .select('balance')
    .where('user_id', '=', userId)
    .executeTakeFirst()
  return wallet?.balance ?? 0
}
