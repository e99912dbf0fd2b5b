import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import type { CloudDatabase, Tx } from '../../../platform/store/database.ts'
import { DISPUTE_EVENT } from '../processor.ts'
import { insertEvent, readIntent, type IntentRow } from './books.ts'

interface Parts {
  db: CloudDatabase
  runtime: Runtime
}

/** A person refunds money in the processor's dashboard. Returns the refund's id. */
export function refundInDashboard({ db, runtime }: Parts, ref: string, amount: number): Promise<string> {
  return db.transact(async (tx) => {
    const intent = await readIntent(tx, ref)
    if (intent.status !== 'succeeded' || intent.refunded + amount > intent.amount)
      throw new Error(`${ref} has not so much to give back`)
    const id = `re_${randomHex(runtime.random, 12)}`
    await tx.q
      .insertInto('sandbox_refunds')
      .values({
        id,
        idempotency_key: `dashboard:${id}`,
        intent_id: ref,
        amount,
        status: 'succeeded',
        metadata: '{}',
        failure_reason: null,
        created_at: runtime.clock.now(),
      })
      .execute()
    await tx.q
      .updateTable('sandbox_intents')
      .set({ refunded: intent.refunded + amount })
      .where('id', '=', ref)
      .execute()
    await insertEvent(tx, runtime, 'refund.updated', 0, {
      id,
      amount,
      status: 'succeeded',
      payment_intent: ref,
      metadata: {},
    })
    return id
  })
}

/** A cardholder's bank takes a payment back. */
export const openDispute = ({ db, runtime }: Parts, ref: string): Promise<void> =>
  db.transact(async (tx) => dispute(tx, runtime, await readIntent(tx, ref)))

/** `openDispute` within a transaction. An intent is disputed once. */
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
  if (opened) await sendEvent(tx, runtime, opened, 'succeeded')
}

/** Closes a dispute: the bank returns the money (`won`) or keeps it (`lost`). */
export function closeDispute({ db, runtime }: Parts, ref: string, end: 'won' | 'lost'): Promise<void> {
  return db.transact(async (tx) => {
    const closed = await tx.q
      .updateTable('sandbox_disputes')
      .set({ status: end })
      .where('intent_id', '=', ref)
      .returningAll()
      .executeTakeFirstOrThrow()
    await sendEvent(tx, runtime, closed, end === 'won' ? 'failed' : 'succeeded')
  })
}

const sendEvent = (
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
