import type { CloudContext } from '../../platform/context.ts'
import type { Intent } from '../processors/processor.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'
import type { MoneyServices } from '../services.ts'
import { processorBackoff, requireProcessor } from '../processors/reach.ts'
import type { Tx } from '../../platform/store/database.ts'
import { moveBalance, type WalletTransactionRow } from './wallet-ledger.ts'

/**
 * Asks the processor for the deposit's payment intent. The request is the same whenever it is made, under the deposit's
 * key: whoever finds the deposit without an intent after a crash makes it again.
 */
export async function submitDeposit(services: MoneyServices, deposit: WalletTransactionRow): Promise<void> {
  const { context, processor } = services
  await ask(services, deposit, () =>
    processor.createIntent({
      idempotencyKey: `deposit:${deposit.id}`,
      begunAt: deposit.created_at,
      amount: deposit.amount,
      currency: context.settings.currency,
      method: deposit.method,
      type: 'card',
      customer: deposit.customer_ref,
      saves: false,
      metadata: { deposit_id: deposit.id },
    }),
  )
}

/** Ends a deposit that its customer did not finish. The processor has the last word: it may have been paid meanwhile. */
export async function abandonDeposit(services: MoneyServices, deposit: WalletTransactionRow): Promise<void> {
  await ask(services, deposit, () => services.processor.cancelIntent(deposit.processor_ref!))
}

async function ask(
  { context, processor }: MoneyServices,
  deposit: WalletTransactionRow,
  call: () => Promise<Intent>,
): Promise<void> {
  requireProcessor(processor, deposit.processor!)
  context.checkpoint('wallet.before-processor')
  const intent = await call()
  context.checkpoint('wallet.after-processor')
  await context.db.transact((tx) => applyDepositOutcome(tx, context, deposit.id, { ...intent, by: 'answer' }))
}

export type DepositOutcome = Pick<Intent, 'status' | 'ref' | 'clientSecret' | 'declineCode'> & {
  /** An answer of the processor to a call of ours, or its webhook: that alone credits the wallet (C §4.6). */
  by: 'answer' | 'webhook'
}

/**
 * The one place where a deposit changes. Success credits the wallet once, however often and by however many events it is
 * reported, and also where the deposit was given up before: the money is the customer's.
 */
export async function applyDepositOutcome(
  tx: Tx,
  context: Pick<CloudContext, 'runtime'>,
  depositId: number,
  outcome: DepositOutcome,
): Promise<void> {
  const deposit = await tx
    .forUpdate(tx.q.selectFrom('wallet_transactions').selectAll().where('id', '=', depositId))
    .executeTakeFirstOrThrow()
  const set = (changes: Partial<WalletTransactionRow>) =>
    tx.q
      .updateTable('wallet_transactions')
      .set({
        processor_ref: deposit.processor_ref ?? outcome.ref,
        client_secret: deposit.client_secret ?? outcome.clientSecret,
        updated_at: context.runtime.clock.now(),
        ...(changes as object),
      })
      .where('id', '=', depositId)
      .execute()
  switch (outcome.status) {
    case 'succeeded':
      if (outcome.by === 'answer') {
        await set({})
        return
      }
      if (deposit.status === 'completed') return
      await set({ status: 'completed' })
      await moveBalance(tx, context, deposit)
      return
    case 'processing':
    case 'requires_action':
      await set({})
      return
    case 'failed':
    case 'canceled':
      await set(
        deposit.status === 'pending' ? { status: outcome.status, decline_code: outcome.declineCode } : {},
      )
  }
}

/**
 * Deposits that were left unfinished: one for which the processor's answer was never learned is asked for again, one whose
 * customer has gone is cancelled there. One that was paid waits for the webhook that says so.
 */
export const depositWork = (services: MoneyServices): WorkKinds => ({
  deposit: {
    backoff: processorBackoff(services.context),
    look: ({ subject }) => lookAtDeposit(services, Number(subject)),
  },
})

async function lookAtDeposit(services: MoneyServices, id: number): Promise<Outcome> {
  const { db, runtime, settings } = services.context
  const deposit = await db.kysely
    .selectFrom('wallet_transactions')
    .selectAll()
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .executeTakeFirst()
  if (!deposit) return done
  const isSubmitted = deposit.processor_ref !== null
  const patienceMs = isSubmitted ? settings.paymentAbandonMs : settings.paymentRecheckMs
  if (deposit.updated_at + patienceMs > runtime.clock.now()) return { next: deposit.updated_at + patienceMs }
  await (isSubmitted ? abandonDeposit(services, deposit) : submitDeposit(services, deposit))
  return lookAtDeposit(services, id)
}
