import type { Selectable } from 'kysely'
import type { CloudContext } from '../../platform/context.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

export type WalletTransactionRow = Selectable<Tables['wallet_transactions']>

/**
 * The only place that changes a wallet's balance: one conditional UPDATE, with the entry that records it
 * (I6). A credit pays the wallet's debt first. Returns the balance after it, or undefined if the balance is
 * too small.
 */
export async function moveBalance(
  tx: Tx,
  context: CloudContext,
  { id, user_id, amount, owed }: Pick<WalletTransactionRow, 'id' | 'user_id' | 'amount' | 'owed'>,
): Promise<number | undefined> {
  const now = context.runtime.clock.now()
  await tx.q
    .insertInto('wallets')
    .values({ user_id, balance: 0, debt: 0, updated_at: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const wallet = await tx.q
    .updateTable('wallets')
    .set((eb) => ({
      balance: eb('balance', '+', amount),
      debt: eb('debt', '+', owed),
      updated_at: now,
    }))
    .where('user_id', '=', user_id)
    .where((eb) => eb(eb('balance', '+', amount), '>=', 0))
    .returning(['balance', 'debt'])
    .executeTakeFirst()
  if (!wallet) return undefined
  await tx.q
    .insertInto('wallet_entries')
    .values({ transaction_id: id, user_id, amount, balance_after: wallet.balance, created_at: now })
    .execute()
  return amount > 0 && wallet.debt > 0 ? payDebt(tx, context, user_id, wallet) : wallet.balance
}

/** Pays the debt from the latest credit, as far as it suffices. The wallet's row is locked. */
async function payDebt(
  tx: Tx,
  context: CloudContext,
  userId: number,
  { balance, debt }: { balance: number; debt: number },
): Promise<number | undefined> {
  const paid = Math.min(balance, debt)
  return moveBalance(
    tx,
    context,
    await insertTransaction(tx, context, {
      user_id: userId,
      type: 'adjustment',
      amount: -paid,
      owed: -paid,
    }),
  )
}

/** The processor's refund or dispute of a deposit, in cents. */
interface DepositMove {
  ref: string
  amount: number
}

/**
 * Takes back a deposit that returned to the payer at the processor. The wallet loses its share up to its
 * balance and owes the rest. Returns the owed cents.
 */
export async function takeDeposit(
  tx: Tx,
  context: CloudContext,
  userId: number,
  { ref, amount }: DepositMove,
): Promise<number> {
  const wallet = await tx
    .forUpdate(tx.q.selectFrom('wallets').select('balance').where('user_id', '=', userId))
    .executeTakeFirst()
  const held = Math.min(amount, wallet?.balance ?? 0)
  const transaction = await insertTransaction(tx, context, {
    user_id: userId,
    type: 'adjustment',
    amount: 0 - held,
    owed: amount - held,
    move_ref: ref,
  })
  await moveBalance(tx, context, transaction)
  return amount - held
}

/** The money of a deposit is back. A move that never debited the wallet changes nothing. */
export async function restoreDeposit(
  tx: Tx,
  context: CloudContext,
  userId: number,
  ref: string,
): Promise<void> {
  const taken = await tx.q
    .selectFrom('wallet_transactions')
    .select(['amount', 'owed'])
    .where('move_ref', '=', ref)
    .executeTakeFirst()
  if (!taken) return
  const transaction = await insertTransaction(tx, context, {
    user_id: userId,
    type: 'adjustment',
    amount: taken.owed - taken.amount,
    move_ref: `${ref} returned`,
  })
  await moveBalance(tx, context, transaction)
}

/**
 * Debits a payment from its customer's wallet. Returns false if the balance is too small; the caller then
 * rolls back.
 */
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

/** Whether a wallet accepts credits: the wallet of a deleted user has no user. Locks the user. */
export async function isWalletOpen(tx: Tx, userId: number): Promise<boolean> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('deleted_at').where('id', '=', userId))
    .executeTakeFirst()
  return user !== undefined && user.deleted_at === null
}

/** Credits a refund of a wallet payment to its wallet, which must be open. */
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

/** Absent fields are null; the status is `completed` by default. */
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
      owed: 0,
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
