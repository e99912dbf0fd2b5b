import type { Handlers } from '../../platform/http/handler.ts'
import type { MoneyServices } from '../services.ts'
import { deposit } from './deposit.ts'
import type { WalletBalance, WalletTransaction } from '../../../protocol/contract/consumer-wallet.ts'
import type { CloudContext } from '../../platform/context.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { Queries } from '../../platform/store/database.ts'
import { readBalance, type WalletTransactionRow } from './wallet-ledger.ts'

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
    .selectFrom('wallet_transactions')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number | string>('amount'), eb.lit(0)).as('cents'))
    .where('user_id', '=', userId)
    .where('status', '=', 'pending')
    .executeTakeFirstOrThrow()
  return {
    balance_cents: await readBalance(q, userId),
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
    .selectFrom('wallet_transactions as t')
    .leftJoin('wallet_entries as e', 'e.transaction_id', 't.id')
    .leftJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 't.id').on('o.kind', '=', 'deposit'),
    )
    .where('t.user_id', '=', userId)
    .orderBy('t.id', 'desc')
    .limit(limit)
    .offset(offset)
    .selectAll('t')
    .select(['e.balance_after', 'o.processor_ref'])
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

type Described = Pick<WalletTransactionRow, 'type' | 'order_id' | 'amount' | 'owed'>

function describe({ type, order_id, amount, owed }: Described): string {
  switch (type) {
    case 'deposit':
      return 'Deposit'
    case 'debit':
      return `Payment of order ${order_id}`
    case 'refund':
      return `Refund of order ${order_id}`
    case 'adjustment':
      if (owed < 0) return 'Payment of what a returned deposit left owing'
      if (owed > 0) return `Deposit taken back by its bank; ${owed} cents of it were spent and are owed`
      return amount > 0 ? 'Deposit restored by its bank' : 'Deposit taken back by its bank'
  }
}
