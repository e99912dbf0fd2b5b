import { sql } from 'kysely'
import { turn } from '../processors/reach.ts'
import type { MoneyServices } from '../services.ts'
import { abandonDeposit, submitDeposit } from './settle-deposit.ts'
import type { WalletTransactionRow } from './wallet-ledger.ts'

const BATCH = 100

/**
 * Brings deposits that were left unfinished to their end: one for which the processor's answer was never learned is asked
 * for again, one whose customer has gone is cancelled there. One that was paid waits for the webhook that says so.
 */
export async function recoverDeposits(services: MoneyServices): Promise<void> {
  const { runtime, settings } = services.context
  const now = runtime.clock.now()
  for (const deposit of await pending(services, now - settings.paymentRecheckMs, false))
    await turn(services, `deposit ${deposit.id}`, () => submitDeposit(services, deposit))
  for (const deposit of await pending(services, now - settings.paymentAbandonMs, true))
    await turn(services, `deposit ${deposit.id}`, () => abandonDeposit(services, deposit))
}

function pending(
  { context, processor }: MoneyServices,
  before: number,
  isSubmitted: boolean,
): Promise<WalletTransactionRow[]> {
  return context.db.kysely
    .selectFrom('wallet_transactions')
    .selectAll()
    .where('status', '=', sql.lit('pending'))
    .where('processor', '=', processor.name)
    .where('processor_ref', isSubmitted ? 'is not' : 'is', null)
    .where('updated_at', '<=', before)
    .orderBy('updated_at')
    .limit(BATCH)
    .execute()
}
