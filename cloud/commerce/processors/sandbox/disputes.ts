import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import type { Tx } from '../../../platform/store/database.ts'
import { DISPUTE_EVENT } from '../processor.ts'
import { insertEvent, type IntentRow } from './books.ts'

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
