import type { WalletBalance, WalletTransaction } from '../../../protocol/contract/consumer-wallet.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { MoneyServices } from '../services.ts'
import { deposit } from './deposit.ts'
import { balanceOf, post, type LedgerEntry } from './ledger.ts'
import { isFromGuest } from './move-ledger.ts'

/** C §4.6. */
export function walletHandlers(
  services: MoneyServices,
): Handlers<'consumer.wallet.balance' | 'consumer.wallet.deposit' | 'consumer.wallet.transactions'> {
  const { context } = services
  const q = context.db.kysely
  return {
    'consumer.wallet.balance': ({ credential }) => walletBalance(q, context, credential.userId),
    'consumer.wallet.deposit': ({ body, credential, idempotencyKey }) =>
      deposit(services, {
        userId: credential.userId,
        amountCents: body.amount_cents,
        method: body.payment_method_id ?? null,
        requestKey: idempotencyKey,
      }),
    'consumer.wallet.transactions': ({ query, credential }) =>
      walletTransactions(q, credential.userId, query),
  }
}

/** `pending_cents`: deposits that the processor has yet to report. */
export async function walletBalance(
  q: Queries,
  { settings }: CloudContext,
  userId: number,
): Promise<WalletBalance> {
  const pending = await q
    .selectFrom('ledger_entries')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number | string>('amount'), eb.lit(0)).as('cents'))
    .where('user_id', '=', userId)
    .where('status', '=', 'pending')
    .executeTakeFirstOrThrow()
  return {
    balance_cents: await balanceOf(q, userId, 'wallet'),
    pending_cents: Number(pending.cents),
    currency: settings.currency,
  }
}

/** A page of a wallet's transactions, newest first. */
export async function walletTransactions(
  q: Queries,
  userId: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<WalletTransaction[]> {
  const rows = await q
    .selectFrom('ledger_entries as e')
    .leftJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 'e.id').on('o.kind', '=', 'deposit'),
    )
    .where('e.user_id', '=', userId)
    .where('e.account', '=', 'wallet')
    .orderBy('e.id', 'desc')
    .limit(limit)
    .offset(offset)
    .selectAll('e')
    .select('o.processor_ref')
    .$narrowType<{ type: WalletTransaction['type'] }>()
    .execute()
  return rows.map((row) => ({
    id: row.id,
    type: row.type,
    amount_cents: row.amount,
    balance_after_cents: row.balance_after,
    status: row.status,
    order_id: row.order_id,
    payment_intent_id: row.processor_ref,
    description: describe(row),
    created_at: timestamp(row.created_at),
  }))
}

type Described = Pick<LedgerEntry, 'order_id' | 'amount' | 'owed' | 'cause'> & Pick<WalletTransaction, 'type'>

function describe({ type, order_id, amount, owed, cause }: Described): string {
  switch (type) {
    case 'deposit':
      return 'Deposit'
    case 'debit':
      return `Payment of order ${order_id}`
    case 'refund':
      return `Refund of order ${order_id}`
    case 'adjustment':
      if (isFromGuest(cause)) return 'Wallet from before you signed in'
      if (owed < 0) return 'Payment of what a returned deposit left owing'
      if (owed > 0) return `Deposit taken back by its bank; ${owed} cents of it were spent and are owed`
      return amount > 0 ? 'Deposit restored by its bank' : 'Deposit taken back by its bank'
  }
}

/** Whether a wallet accepts credits: the wallet of a deleted user has no user. Locks the user. */
export async function isWalletOpen(tx: Tx, userId: number): Promise<boolean> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('deleted_at').where('id', '=', userId))
    .executeTakeFirst()
  return user !== undefined && user.deleted_at === null
}

/**
 * Takes back a deposit that returned to the payer at the processor, by the refund or dispute `ref`. The wallet
 * loses its share up to its balance and owes the rest. Returns the owed cents.
 */
export async function takeDeposit(
  tx: Tx,
  context: CloudContext,
  userId: number,
  { ref, amount }: { ref: string; amount: number },
): Promise<number> {
  const wallet = await tx
    .forUpdate(
      tx.q
        .selectFrom('ledger_accounts')
        .select('balance')
        .where('user_id', '=', userId)
        .where('account', '=', 'wallet'),
    )
    .executeTakeFirst()
  const held = Math.min(amount, wallet?.balance ?? 0)
  const owed = amount - held
  await adjust(tx, context, userId, { amount: 0 - held, owed, cause: ref })
  return owed
}

/** The money of a deposit is back. A refund or dispute that never debited the wallet changes nothing. */
export async function restoreDeposit(
  tx: Tx,
  context: CloudContext,
  userId: number,
  ref: string,
): Promise<void> {
  const taken = await tx.q
    .selectFrom('ledger_entries')
    .select(['amount', 'owed'])
    .where('account', '=', 'wallet')
    .where('cause', '=', ref)
    .executeTakeFirst()
  if (taken)
    await adjust(tx, context, userId, { amount: taken.owed - taken.amount, cause: `${ref} returned` })
}

const adjust = (
  tx: Tx,
  context: CloudContext,
  userId: number,
  adjustment: { amount: number; owed?: number; cause: string },
) => post(tx, context, { user_id: userId, account: 'wallet', type: 'adjustment', ...adjustment })
