import type { Handlers } from '../../platform/http/handler.ts'
import type { MoneyServices } from '../services.ts'
import { deposit } from './deposit.ts'
import { walletBalance, walletTransactions } from './transactions.ts'

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
