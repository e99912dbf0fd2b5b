import type { Updateable } from 'kysely'
import type { Tables } from '../../platform/store/schema.ts'
import type { DepositResponse } from '../../../protocol/contract/consumer-wallet.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import { KEEP_MS } from '../../platform/http/idempotency.ts'
import { customerOfMethod } from '../methods/method-rows.ts'
import {
  identityOf,
  refusal,
  openSecret,
  orInDoubt,
  sealedSecret,
  orUnavailable,
  processorBackoff,
  requireProcessor,
  type Intent,
  type IntentRequest,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { schedule } from '../../platform/work/queue.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { insertTransaction, moveBalance, type WalletTransactionRow } from './wallet-ledger.ts'
import { done, type Outcome, type WorkKinds } from '../../platform/work/runner.ts'

export interface DepositRequest {
  userId: number
  amountCents: number
  /** Null: the customer chooses one in the processor's own form. */
  method: string | null
  /** Names the request: made again, it goes on with the deposit that it made before. */
  requestKey?: string | undefined
}

/**
 * Begins a deposit: it is recorded, then the processor is asked for a payment intent (C §4.6). The wallet is credited when
 * the processor's webhook reports success, or where that is lost when the processor is asked. Throws `card_declined` and `payment_failed` where the
 * processor refuses at once, `processor_unavailable`.
 */
export async function deposit(services: MoneyServices, request: DepositRequest): Promise<DepositResponse> {
  const { context, processor } = services
  const { currency, depositMinCents, depositMaxCents } = context.settings
  const least = Math.max(depositMinCents, processor.leastAmount(currency))
  requireWithin(request.amountCents, least, depositMaxCents)
  if (request.method !== null && !processor.knowsMethod(request.method, 'card'))
    throw new ApiError('payment_method_not_found')
  const begun = await context.db.transact((tx) => begin(tx, services, request))
  if (begun.status === 'pending' && begun.processor_ref === null)
    await orUnavailable(submitDeposit(services, begun))
  return answer(context, await readTransaction(context, begun.id))
}

function requireWithin(amount: number, least: number, most: number): void {
  const refuse = (
    type: 'greater_than_equal' | 'less_than_equal',
    than: string,
    ctx: Record<string, number>,
    limit: number,
  ): never => {
    const msg = `Input should be ${than} than or equal to ${limit}`
    throw ApiError.invalid({ loc: ['body', 'amount_cents'], type, msg, input: amount, ctx })
  }
  if (amount < least) refuse('greater_than_equal', 'greater', { ge: least }, least)
  if (amount > most) refuse('less_than_equal', 'less', { le: most }, most)
}

async function begin(
  tx: Tx,
  { context, processor }: MoneyServices,
  { userId, amountCents, method, requestKey }: DepositRequest,
): Promise<WalletTransactionRow> {
  if (requestKey !== undefined) {
    const known = await tx.q
      .selectFrom('wallet_transactions')
      .selectAll()
      .where('user_id', '=', userId)
      .where('request_key', '=', requestKey)
      .where('amount', '=', amountCents)
      // One that came to nothing is begun anew.
      .where('status', 'in', ['pending', 'completed'])
      .where('created_at', '>', context.runtime.clock.now() - KEEP_MS)
      .orderBy('id', 'desc')
      .executeTakeFirst()
    if (known && known.method === method) return known
  }
  const owner = { userId, processor: processor.name }
  // Whoever is being deleted pays nothing more into a wallet that nobody can open.
  await lockUser(tx, userId)
  const begun = await insertTransaction(tx, context, {
    user_id: userId,
    type: 'deposit',
    amount: amountCents,
    status: 'pending',
    processor: processor.name,
    method,
    customer_ref:
      method === null
        ? null
        : ((await customerOfMethod(tx.q, { ...owner, method }).executeTakeFirst())?.ref ?? null),
    request_key: requestKey ?? null,
  })
  await schedule(tx, 'deposit', begun.id, begun.updated_at + context.settings.paymentRecheckMs)
  return begun
}

function readTransaction({ db }: CloudContext, id: number): Promise<WalletTransactionRow> {
  return db.kysely
    .selectFrom('wallet_transactions')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
}

function answer(context: CloudContext, deposit: WalletTransactionRow): DepositResponse {
  const details = { transaction_id: deposit.id, payment_intent_id: deposit.processor_ref }
  if (deposit.status === 'failed' || deposit.status === 'canceled')
    throw deposit.decline_code === null
      ? new ApiError('payment_failed', undefined, details)
      : refusal(deposit.decline_code, details)
  return {
    transaction_id: deposit.id,
    payment_intent_id: deposit.processor_ref!,
    client_secret: openSecret(context, deposit.client_secret)!,
    status: 'pending',
    amount_cents: deposit.amount,
  }
}

/** Asks the processor for the deposit's payment intent, under the deposit's key. */
async function submitDeposit(services: MoneyServices, deposit: WalletTransactionRow): Promise<void> {
  const { context, processor } = services
  await ask(services, deposit, 'answer', () => processor.createIntent(requestOf(context, deposit)))
}

const requestOf = ({ settings }: CloudContext, deposit: WalletTransactionRow): IntentRequest => ({
  idempotencyKey: `deposit:${identityOf(deposit)}`,
  begunAt: deposit.created_at,
  amount: deposit.amount,
  currency: settings.currency,
  method: deposit.method,
  type: 'card',
  customer: deposit.customer_ref,
  saves: false,
  metadata: { deposit_id: identityOf(deposit) },
})

/**
 * Asks the processor what became of a deposit that it has not told of. One whose customer has gone is given up, and so is
 * one of which nobody was told that it was begun. The processor has the last word: it may have been paid meanwhile.
 */
async function inquire(services: MoneyServices, deposit: WalletTransactionRow): Promise<Intent> {
  const { context, processor } = services
  const ref = deposit.processor_ref
  const isGivenUp = givenUpAt(context, deposit) <= context.runtime.clock.now()
  return ask(services, deposit, 'inquiry', () => {
    if (ref === null) return processor.abandonIntent(requestOf(context, deposit))
    return isGivenUp ? processor.cancelIntent(ref) : processor.readIntent(ref)
  })
}

/**
 * One that was refused to its customer is given up from then on. One that was begun in the future was begun by a clock that was
 * ahead: nobody knows how long ago.
 */
const givenUpAt = ({ runtime, settings }: CloudContext, deposit: WalletTransactionRow): number =>
  isCompletable(deposit) && deposit.created_at <= runtime.clock.now()
    ? deposit.created_at + settings.paymentAbandonMs
    : 0

/** Of one that was refused at once nobody was given the secret that it takes to complete it with another card. */
const isCompletable = ({ status, client_secret }: WalletTransactionRow): boolean =>
  status !== 'failed' || client_secret !== null

async function ask(
  { context, processor }: MoneyServices,
  deposit: WalletTransactionRow,
  by: DepositOutcome['by'],
  call: () => Promise<Intent>,
): Promise<Intent> {
  requireProcessor(processor, deposit.processor!)
  context.checkpoint('wallet.before-processor')
  const intent = await orInDoubt(context, call())
  context.checkpoint('wallet.after-processor')
  await context.db.transact((tx) => applyDepositOutcome(tx, context, deposit.id, { ...intent, by }))
  return intent
}

export type DepositOutcome = Pick<Intent, 'status' | 'ref' | 'clientSecret' | 'declineCode'> & {
  /**
   * The processor's answer to the customer's own call, which does not credit the wallet (C §4.6); its webhook; or, where
   * that did not come, its answer to the question what became of the deposit.
   */
  by: 'answer' | 'webhook' | 'inquiry'
}

/**
 * The one place where a deposit changes. Success credits the wallet once, however often and by however many events it is
 * reported, and also where the deposit was given up before: the money is the customer's.
 */
export async function applyDepositOutcome(
  tx: Tx,
  context: CloudContext,
  depositId: number,
  outcome: DepositOutcome,
): Promise<void> {
  const deposit = await tx
    .forUpdate(tx.q.selectFrom('wallet_transactions').selectAll().where('id', '=', depositId))
    .executeTakeFirstOrThrow()
  const isLost = outcome.status === 'failed' || outcome.status === 'canceled'
  const set = (changes: Pick<Updateable<Tables['wallet_transactions']>, 'status' | 'decline_code'>) =>
    tx.q
      .updateTable('wallet_transactions')
      .set({
        processor_ref: deposit.processor_ref ?? outcome.ref,
        client_secret: deposit.client_secret ?? (isLost ? null : sealedSecret(context, outcome.clientSecret)),
        updated_at: context.runtime.clock.now(),
        ...changes,
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

/** Cents of a user's deposits that may still succeed: of those that failed, too, while somebody can complete them. */
export async function openDeposits(q: Queries, userId: number): Promise<number> {
  const { cents } = await q
    .selectFrom('wallet_transactions as t')
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number | string>('t.amount'), eb.lit(0)).as('cents'))
    .where('t.user_id', '=', userId)
    .where('t.type', '=', 'deposit')
    .where((eb) =>
      eb.or([
        eb('t.status', '=', 'pending'),
        eb.and([
          eb('t.status', '=', 'failed'),
          eb('t.client_secret', 'is not', null),
          eb.exists(
            eb
              .selectFrom('due_work as w')
              .select('w.subject')
              .where('w.kind', '=', 'deposit')
              .where('w.subject', '=', eb.cast<string>('t.id', 'text')),
          ),
        ]),
      ]),
    )
    .executeTakeFirstOrThrow()
  return Number(cents)
}

/** Deposits that are unfinished: the processor's word on them was lost, or their customers have gone. */
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
    .where('status', 'in', ['pending', 'failed'])
    .executeTakeFirst()
  // One that failed its customer may complete with another card, until it is given up.
  if (!deposit || (deposit.status === 'failed' && deposit.processor_ref === null)) return done
  const lookAt = deposit.updated_at + settings.paymentRecheckMs
  if (lookAt > runtime.clock.now()) return { next: lookAt }
  const { status } = await inquire(services, deposit)
  const now = runtime.clock.now()
  const isGivenUp = givenUpAt(services.context, deposit) <= now
  if (status === 'succeeded' || status === 'canceled' || (status === 'failed' && isGivenUp)) return done
  // Its customer is still at it, or a bank is.
  return { next: isGivenUp ? now + settings.paymentAbandonMs : givenUpAt(services.context, deposit) }
}
