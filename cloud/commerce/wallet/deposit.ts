import type { DepositResponse } from '../../../protocol/contract/consumer-wallet.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import { KEEP_MS } from '../../platform/http/idempotency.ts'
import { customerOfMethod } from '../methods/method-rows.ts'
import { refusal } from '../processors/reach.ts'
import type { MoneyServices } from '../services.ts'
import { orUnavailable } from '../processors/reach.ts'
import { schedule } from '../../platform/work/queue.ts'
import type { Tx } from '../../platform/store/database.ts'
import { submitDeposit } from './settle-deposit.ts'
import { insertTransaction, type WalletTransactionRow } from './wallet-ledger.ts'

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
 * the processor's webhook reports success, and by nothing else. Throws `card_declined` and `payment_failed` where the
 * processor refuses at once, `processor_unavailable`.
 */
export async function deposit(services: MoneyServices, request: DepositRequest): Promise<DepositResponse> {
  const { context, processor } = services
  requireWithin(request.amountCents, context.settings)
  if (request.method !== null && !processor.knowsMethod(request.method, 'card'))
    throw new ApiError('payment_method_not_found')
  const begun = await context.db.transact((tx) => begin(tx, services, request))
  if (begun.status === 'pending' && begun.processor_ref === null)
    await orUnavailable(submitDeposit(services, begun))
  return answer(await readTransaction(context, begun.id))
}

function requireWithin(amount: number, { depositMinCents, depositMaxCents }: CloudContext['settings']): void {
  const loc = ['body', 'amount_cents']
  if (amount < depositMinCents)
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc,
        type: 'greater_than_equal',
        msg: `Input should be greater than or equal to ${depositMinCents}`,
        input: amount,
        ctx: { ge: depositMinCents },
      },
    ])
  if (amount > depositMaxCents)
    throw new ApiError('validation_error', undefined, undefined, [
      {
        loc,
        type: 'less_than_equal',
        msg: `Input should be less than or equal to ${depositMaxCents}`,
        input: amount,
        ctx: { le: depositMaxCents },
      },
    ])
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
      .where('created_at', '>', context.runtime.clock.now() - KEEP_MS)
      .orderBy('id', 'desc')
      .executeTakeFirst()
    if (known && known.method === method) return known
  }
  const owner = { userId, processor: processor.name }
  const begun = await insertTransaction(tx, context, {
    user_id: userId,
    type: 'deposit',
    amount: amountCents,
    status: 'pending',
    processor: processor.name,
    method,
    customer_ref: method === null ? null : ((await customerOfMethod(tx, { ...owner, method })) ?? null),
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

function answer(deposit: WalletTransactionRow): DepositResponse {
  const details = { transaction_id: deposit.id, payment_intent_id: deposit.processor_ref }
  if (deposit.status === 'failed' || deposit.status === 'canceled')
    throw deposit.decline_code === null
      ? new ApiError('payment_failed', undefined, details)
      : refusal(deposit.decline_code, details)
  return {
    transaction_id: deposit.id,
    payment_intent_id: deposit.processor_ref!,
    client_secret: deposit.client_secret!,
    status: 'pending',
    amount_cents: deposit.amount,
  }
}
