import { noCheckpoint, type Checkpoint } from '../../../../protocol/model/checkpoint.ts'
import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import { schedule } from '../../../platform/work/queue.ts'
import type { CloudDatabase, Tx } from '../../../platform/store/database.ts'
import { allOf, statement } from '../../../platform/store/statement.ts'
import {
  METHOD_UNKNOWN,
  leastAmount,
  DISPUTE_EVENT,
  type CardProcessor,
  type Intent,
  type IntentRequest,
  type IntentStatus,
  type ProcessorRefund,
  type RefundRequest,
} from '../processor.ts'
import {
  moveIntent,
  readIntent,
  readSandboxRefund,
  movesSince,
  paymentsSince,
  refundsOf,
  toIntent,
  toRefund,
  writeEvent,
  attach,
  cardToCharge,
  detach,
  dropCustomer,
  insertCustomer,
  insertSetupIntent,
  completeRefund,
  insertEvent,
  type IntentRow,
} from './books.ts'
import { cardNamed, cardOf, cardToSave, isOwnId } from './cards.ts'
import type { CloudContext } from '../../../platform/context.ts'
import { done, Unavailable, type WorkKinds } from '../../../platform/work/runner.ts'
import { signPayload } from '../../../platform/http/signature.ts'

interface SandboxOptions {
  db: CloudDatabase
  runtime: Runtime
  checkpoint?: Checkpoint
  /** Delay of webhook events in milliseconds. */
  eventDelayMs?: number
}

/** The delay that "after a moment" means, in milliseconds. */
const EVENT_DELAY_MS = 500

/**
 * A card processor that moves no money. It plays an external party. It writes its own books in its own
 * transactions, and its events arrive by webhook (`sandboxWork`) like those of a real processor.
 */
export function createSandbox({
  db,
  runtime,
  checkpoint = noCheckpoint,
  eventDelayMs = EVENT_DELAY_MS,
}: SandboxOptions): CardProcessor {
  async function write<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const value = await db.transact(work)
    checkpoint('processor.after-commit')
    return value
  }

  return {
    name: 'sandbox',
    leastAmount,
    knowsMethod: (method, type) => isOwnId(method) || cardNamed(method, type) !== undefined,
    savesMethod: (method) => isOwnId(method) || cardToSave(method) !== undefined,
    createIntent: (request) =>
      write(async (tx) => {
        const created = await insertIntent(tx, runtime, request, eventDelayMs)
        if (created === 'method-unknown') return refused('failed')
        // An intent in processing gets its event when it completes (`sandboxWork`).
        if (created) await writeEvent(tx, runtime, created, eventDelayMs)
        return toIntent(created ?? (await intentByKey(tx, request.idempotencyKey)))
      }),
    readIntent: (ref) => write(async (tx) => toIntent(await readIntent(tx, ref))),
    confirmIntent: (ref) =>
      write(async (tx) => {
        const intent = await readIntent(tx, ref)
        return toIntent(await moveIntent(tx, runtime, intent, ['requires_action'], 'succeeded', eventDelayMs))
      }),
    cancelIntent: (ref) => write(async (tx) => cancel(tx, runtime, await readIntent(tx, ref), eventDelayMs)),
    abandonIntent: (request) =>
      write(async (tx) => {
        const created = await insertIntent(tx, runtime, request, eventDelayMs, 'canceled')
        if (created === 'method-unknown') return refused('canceled')
        return created
          ? toIntent(created)
          : cancel(tx, runtime, await intentByKey(tx, request.idempotencyKey), eventDelayMs)
      }),
    createRefund: (request) => write((tx) => refund(tx, runtime, request, eventDelayMs)),
    readRefund: (ref) => write(async (tx) => toRefund(await readSandboxRefund(tx, ref))),
    listRefunds: (ref) => write((tx) => refundsOf(tx, ref)),
    listMoves: (request) => write((tx) => movesSince(tx, request)),
    listPayments: (request) => write((tx) => paymentsSince(tx, request)),
    createCustomer: (request) => write((tx) => insertCustomer(tx, runtime, request)),
    removeCustomer: (ref) => write((tx) => dropCustomer(tx, ref)),
    createSetupIntent: (request) => write((tx) => insertSetupIntent(tx, runtime, request)),
    attachMethod: (request) => write((tx) => attach(tx, runtime, request)),
    detachMethod: (request) => write((tx) => detach(tx, request)),
    // The sandbox already uses the service's own format.
    readEvent: (body) => body,
  }
}

/** No intent was made. */
const refused = (status: 'failed' | 'canceled'): Intent => ({
  ref: null,
  status,
  declineCode: METHOD_UNKNOWN,
  clientSecret: null,
})

/** Undefined if the key has already made one. */
async function insertIntent(
  tx: Tx,
  { clock, random }: Runtime,
  request: IntentRequest,
  eventDelayMs: number,
  /** The first status, which overrides the card's. */
  status?: IntentStatus,
): Promise<IntentRow | 'method-unknown' | undefined> {
  const { method } = request
  const name = method === null ? null : await cardToCharge(tx, { ...request, method })
  const card = name === undefined ? undefined : cardOf(name)
  // An intent that exists continues after its method is removed.
  if (name === undefined || !card)
    return (await readIntentByKey(tx, request.idempotencyKey)) ? undefined : 'method-unknown'
  const id = `pi_${randomHex(random, 12)}`
  const [created] = await addIntent(tx.q, {
    id,
    key: request.idempotencyKey,
    amount: request.amount,
    method: name,
    status: status ?? card.status,
    declineCode: card.declineCode ?? null,
    clientSecret: `${id}_secret_${randomHex(random, 8)}`,
    metadata: JSON.stringify(request.metadata),
    now: clock.now(),
  })
  if (created && card.isDisputed)
    await schedule(tx, 'sandbox.dispute', created.id, clock.now() + 2 * eventDelayMs)
  if (created?.status === 'processing')
    await schedule(tx, 'sandbox.intent', created.id, clock.now() + eventDelayMs)
  return created
}

interface NewIntent {
  id: string
  key: string
  amount: number
  method: string | null
  status: IntentStatus
  declineCode: string | null
  clientSecret: string
  metadata: string
  now: number
}

const addIntent = statement((q, intent: NewIntent) =>
  q
    .insertInto('sandbox_intents')
    .values({
      id: intent.id,
      idempotency_key: intent.key,
      amount: intent.amount,
      refunded: 0,
      method: intent.method,
      status: intent.status,
      decline_code: intent.declineCode,
      client_secret: intent.clientSecret,
      metadata: intent.metadata,
      created_at: intent.now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning(allOf('sandbox_intents')),
)

const readIntentByKey = (tx: Tx, key: string): Promise<IntentRow | undefined> =>
  tx
    .forUpdate(tx.q.selectFrom('sandbox_intents').selectAll().where('idempotency_key', '=', key))
    .executeTakeFirst()

const intentByKey = async (tx: Tx, key: string): Promise<IntentRow> => (await readIntentByKey(tx, key))!

const cancel = async (tx: Tx, runtime: Runtime, intent: IntentRow, delayMs: number): Promise<Intent> =>
  toIntent(await moveIntent(tx, runtime, intent, ['requires_action', 'processing'], 'canceled', delayMs))

async function refund(
  tx: Tx,
  runtime: Runtime,
  request: RefundRequest,
  eventDelayMs: number,
): Promise<ProcessorRefund> {
  const { idempotencyKey, ref, amount } = request
  const intent = await readIntent(tx, ref)
  const known = await tx.q
    .selectFrom('sandbox_refunds')
    .selectAll()
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirst()
  if (known) return toRefund(known)
  if (await isDisputed(tx, ref)) return { ref: null, status: 'failed', failureReason: 'charge_disputed' }
  const failureReason = refundFailure(intent, amount)
  const success = cardOf(intent.method)?.refundsLater ? 'pending' : 'succeeded'
  const row = await tx.q
    .insertInto('sandbox_refunds')
    .values({
      id: `re_${randomHex(runtime.random, 12)}`,
      idempotency_key: idempotencyKey,
      intent_id: ref,
      amount,
      status: failureReason === null ? success : 'failed',
      metadata: JSON.stringify(request.metadata),
      failure_reason: failureReason,
      created_at: runtime.clock.now(),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  if (failureReason === null)
    await tx.q
      .updateTable('sandbox_intents')
      .set({ refunded: intent.refunded + amount })
      .where('id', '=', ref)
      .execute()
  if (row.status === 'pending')
    await schedule(tx, 'sandbox.refund', row.id, runtime.clock.now() + eventDelayMs)
  return toRefund(row)
}

const isDisputed = async (tx: Tx, ref: string): Promise<boolean> =>
  (await tx.q
    .selectFrom('sandbox_disputes')
    .select('id')
    .where('intent_id', '=', ref)
    .where('status', '<>', 'won')
    .executeTakeFirst()) !== undefined

function refundFailure(intent: IntentRow, amount: number): string | null {
  if (intent.status !== 'succeeded') return 'charge_not_captured'
  if (intent.refunded + amount > intent.amount) return 'amount_too_large'
  return cardOf(intent.method)?.refundFailure ?? null
}

const undelivered = statement((q, { id }: { id: string }) =>
  q.selectFrom('sandbox_events').select('body').where('id', '=', id).where('delivered_at', 'is', null),
)
const noteDelivery = statement((q, { id, now }: { id: string; now: number }) =>
  q.updateTable('sandbox_events').set({ delivered_at: now }).where('id', '=', id),
)

/**
 * Delivers an event to a listener. Returns true if it was accepted (a 2xx). Never rejects if the listener is
 * unreachable.
 */
type DeliverEvent = (body: string, signature: string) => Promise<boolean>

interface DeliveryOptions {
  /** Its database contains the sandbox's own books. */
  context: CloudContext
  secret: string
  deliver: DeliverEvent
}

/**
 * Due work of the sandbox. Asynchronous payments and refunds succeed in the end, and only a webhook reports
 * it. Events are delivered until a listener accepts them.
 */
export const sandboxWork = ({ context, secret, deliver }: DeliveryOptions): WorkKinds => ({
  'sandbox.intent': {
    run: ({ subject }) =>
      context.db.transact(async (tx) => {
        await moveIntent(tx, context.runtime, await readIntent(tx, subject), ['processing'], 'succeeded', 0)
        return done
      }),
  },
  'sandbox.dispute': {
    run: ({ subject }) =>
      context.db.transact(async (tx) => {
        await dispute(tx, context.runtime, await readIntent(tx, subject))
        return done
      }),
  },
  'sandbox.refund': {
    run: ({ subject }) =>
      context.db.transact(async (tx) => {
        await completeRefund(tx, context.runtime, await readSandboxRefund(tx, subject))
        return done
      }),
  },
  'sandbox.event': {
    backoff: { firstMs: 1000, maxMs: 60_000 },
    async run({ subject }) {
      const { db, runtime, checkpoint } = context
      const [event] = await undelivered(db.kysely, { id: subject })
      if (!event) return done
      const isTaken = await deliver(event.body, signPayload(event.body, secret, runtime.clock.now()))
      checkpoint('processor.event-delivered')
      if (!isTaken) throw new Unavailable('the event was not taken')
      await noteDelivery(db.kysely, { id: subject, now: runtime.clock.now() })
      return done
    },
  },
})

/** A cardholder's bank takes a payment back. An intent is disputed once. */
export async function dispute(tx: Tx, runtime: Runtime, intent: IntentRow): Promise<void> {
  const amount = intent.amount - intent.refunded
  if (intent.status !== 'succeeded' || amount === 0) return
  const opened = await tx.q
    .insertInto('sandbox_disputes')
    .values({
      id: `dp_${randomHex(runtime.random, 12)}`,
      intent_id: intent.id,
      amount,
      status: 'open',
      created_at: runtime.clock.now(),
    })
    .onConflict((conflict) => conflict.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (opened) await sendDispute(tx, runtime, opened, 'succeeded')
}

/** Sends the state of a dispute: `failed` if the bank returns the money. */
export const sendDispute = (
  tx: Tx,
  runtime: Runtime,
  { id, amount, intent_id }: { id: string; amount: number; intent_id: string },
  status: 'succeeded' | 'failed',
): Promise<void> =>
  insertEvent(tx, runtime, DISPUTE_EVENT, 0, {
    id,
    amount,
    status,
    payment_intent: intent_id,
    failure_reason: status === 'failed' ? 'won' : 'fraudulent',
  })
