import type { DepositResponse } from '../../../protocol/contract/consumer-wallet.ts'
import { clearAlarm, everyOwner, raiseAlarm } from '../../events/alarms/alarms.ts'
import { ApiError } from '../../platform/api-error.ts'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import type { CloudContext } from '../../platform/context.ts'
import { KEEP_MS } from '../../platform/http/idempotency.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { customerOfMethod } from '../methods/method-rows.ts'
import { askIntent, type IntentExtra } from '../money/intents.ts'
import { begin, keyOf, MoneyOperations, nameOf, readOperation, type Operation } from '../money/operations.ts'
import { resume } from '../money/resume.ts'
import { openSecret, orUnavailable, refusal, type IntentRequest } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { insertEntry, post, type LedgerEntry } from './ledger.ts'

/** Locks a deposit. Undefined if there is none. */
export const lockDeposit = (tx: Tx, id: number): Promise<LedgerEntry | undefined> =>
  tx.forUpdate(tx.q.selectFrom('ledger_entries').selectAll().where('id', '=', id)).executeTakeFirst()

const findDeposit = (q: Queries, id: number): Promise<LedgerEntry | undefined> =>
  q.selectFrom('ledger_entries').selectAll().where('id', '=', id).executeTakeFirst()

/**
 * Takes money for a wallet and credits it. Success credits the wallet once, even after the deposit was given
 * up: the money belongs to the customer.
 */
export const deposits = new MoneyOperations<LedgerEntry, LedgerEntry, IntentExtra>({
  name: 'deposit',
  endsUnanswered: true,
  find: findDeposit,
  async request(services, operation, deposit, by) {
    // No caller has learned of this deposit.
    const isUnanswered = by === 'recovery' && operation.processor_ref === null
    const asked = isUnanswered ? ({ ...operation, goal: 'ended' } as const) : operation
    const answer = await askIntent(services, asked, requestOf(services.context, operation, deposit))
    // C §4.6: the processor's event credits the wallet; the answer to the customer's own call does not.
    return by === 'caller' && answer.outcome === 'succeeded' ? { ...answer, outcome: 'processing' } : answer
  },
  lock: (tx, { id }) => lockDeposit(tx, id),
  goalAfter: ({ goal }, state) => (state === 'succeeded' ? 'done' : goal),
  async apply(tx, context, { subject: deposit, operation, before, outcome }) {
    const { state } = operation
    if (operation.given_up_at !== before.given_up_at) await reportStuck(tx, context, deposit, operation)
    if (state === 'succeeded') await post(tx, context, deposit)
    const isLost = state === 'declined' || state === 'failed' || state === 'canceled'
    if (!isLost || deposit.status !== 'pending') return
    const status = outcome === 'canceled' ? 'canceled' : 'failed'
    await tx.q
      .updateTable('ledger_entries')
      .set({ status, updated_at: context.runtime.clock.now() })
      .where('id', '=', deposit.id)
      .execute()
  },
})

const requestOf = (
  { settings }: CloudContext,
  operation: Operation,
  { amount, method, customer_ref, created_at }: LedgerEntry,
): IntentRequest => ({
  idempotencyKey: keyOf(operation),
  startedAt: created_at,
  amount,
  currency: settings.currency,
  method,
  type: 'card',
  customer: customer_ref,
  saves: false,
  metadata: { deposit_id: nameOf(operation) },
})

interface DepositRequest {
  userId: number
  amountCents: number
  /** Null: the customer chooses one in the processor's own form. */
  method: string | null
  /** Identifies the request: a repeated request continues the deposit that it made before. */
  requestKey?: string | undefined
}

/**
 * Starts a deposit, and asks the processor for its payment intent (C §4.6). Throws `card_declined`,
 * `payment_failed`, `processor_unavailable`.
 */
export async function deposit(services: MoneyServices, request: DepositRequest): Promise<DepositResponse> {
  const { context, processor } = services
  const { kysely: q } = context.db
  const { currency, depositMinCents, depositMaxCents } = context.settings
  const least = Math.max(depositMinCents, processor.leastAmount(currency))
  requireWithin(request.amountCents, least, depositMaxCents)
  if (request.method !== null && !processor.knowsMethod(request.method, 'card'))
    throw new ApiError('payment_method_not_found')
  const { id } = await context.db.transact((tx) => findOrBegin(tx, services, request))
  const read = async () => ({
    row: (await findDeposit(q, id))!,
    operation: (await readOperation(q, 'deposit', id))!,
  })
  const started = await read()
  if (started.operation.state !== 'unanswered') return answer(context, started.row, started.operation)
  await orUnavailable(deposits.execute(services, started.row, started.operation, { by: 'caller' }))
  const { row, operation } = await read()
  return answer(context, row, operation)
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

async function findOrBegin(
  tx: Tx,
  { context, processor }: MoneyServices,
  { userId, amountCents, method, requestKey }: DepositRequest,
): Promise<LedgerEntry> {
  // A user under deletion makes no further deposits: the wallet would have no user. Two requests with one key wait here
  // for each other: the second finds the deposit of the first.
  await lockUser(tx, userId)
  if (requestKey !== undefined) {
    const known = await tx.q
      .selectFrom('ledger_entries')
      .selectAll()
      .where('user_id', '=', userId)
      .where('request_key', '=', requestKey)
      .where('amount', '=', amountCents)
      // A deposit that failed is started again.
      .where('status', 'in', ['pending', 'completed'])
      .where('created_at', '>', context.runtime.clock.now() - KEEP_MS)
      .orderBy('id', 'desc')
      .executeTakeFirst()
    if (known && known.method === method) {
      const locked = await lockDeposit(tx, known.id)
      await resume(tx, context, (await readOperation(tx.q, 'deposit', known.id))!)
      return locked!
    }
  }
  const saved =
    method === null
      ? undefined
      : await customerOfMethod(tx.q, { userId, processor: processor.name, method }).executeTakeFirst()
  const started = await insertEntry(tx, context, {
    user_id: userId,
    account: 'wallet',
    type: 'deposit',
    amount: amountCents,
    processor: processor.name,
    method,
    customer_ref: saved?.ref ?? null,
    request_key: requestKey ?? null,
  })
  await begin(tx, context, {
    kind: 'deposit',
    subject: started.id,
    processor: processor.name,
    give_up_at: started.created_at + context.settings.paymentAbandonMs,
    started_at: started.created_at,
  })
  return started
}

function answer(
  context: CloudContext,
  { id, status, amount }: LedgerEntry,
  { processor_ref: ref, client_secret, reason }: Operation,
): DepositResponse {
  const details = { transaction_id: id, payment_intent_id: ref }
  if (status === 'failed' || status === 'canceled')
    throw reason === null ? new ApiError('payment_failed', undefined, details) : refusal(reason, details)
  return {
    transaction_id: id,
    payment_intent_id: ref!,
    client_secret: openSecret(context, client_secret)!,
    status: 'pending',
    amount_cents: amount,
  }
}

/**
 * Cents of a user's deposits that may still succeed. A declined deposit may succeed while its customer can
 * complete it.
 */
export async function openDeposits(q: Queries, userId: number): Promise<number> {
  const { cents } = await q
    .selectFrom('ledger_entries as t')
    .innerJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 't.id').on('o.kind', '=', 'deposit'),
    )
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number | string>('t.amount'), eb.lit(0)).as('cents'))
    .where('t.user_id', '=', userId)
    .where('t.type', '=', 'deposit')
    .where((eb) =>
      eb.or([
        eb('t.status', '=', 'pending'),
        eb.and([eb('o.state', '=', 'declined'), eb('o.goal', '=', 'done')]),
      ]),
    )
    .executeTakeFirstOrThrow()
  return Number(cents)
}

/** Deposits with an outcome that the processor has not reported in time, oldest first, for operators. */
export const stuckDeposits = (q: Queries) =>
  q
    .selectFrom('money_operations as o')
    .innerJoin('ledger_entries as e', 'e.id', 'o.subject')
    .select(['e.id', 'e.user_id', 'o.processor', 'o.processor_ref', 'e.amount', 'o.given_up_at as stuck_at'])
    .where('o.kind', '=', 'deposit')
    .where('o.given_up_at', 'is not', null)
    .orderBy('e.id')

/**
 * Raises or clears the alarms of a stuck deposit: a wallet pays at the hubs of all owners. A bank may work on a deposit for
 * days, which is no problem while the processor reports it.
 */
async function reportStuck(
  tx: Tx,
  context: CloudContext,
  { id, amount }: LedgerEntry,
  { processor, processor_ref, state, in_doubt, given_up_at: since }: Operation,
): Promise<void> {
  if (since !== null && state === 'processing' && in_doubt === 0) return
  for (const place of await everyOwner(tx)) {
    const incident = { ...place, kind: 'payment_stuck', subject: `deposit ${id}` } as const
    const details = { deposit_id: id, processor, processor_ref, amount }
    if (since === null) await clearAlarm(tx, context, incident)
    else await raiseAlarm(tx, context, { ...incident, details, since })
  }
}
