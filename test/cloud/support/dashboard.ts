import { randomHex } from '../../../protocol/model/ids.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { insertEvent, readIntent } from '../../../cloud/commerce/processors/sandbox/books.ts'
import { dispute, sendDispute } from '../../../cloud/commerce/processors/sandbox/sandbox.ts'
import type { CloudDatabase } from '../../../cloud/platform/store/database.ts'

/** Acts of people at the sandbox processor and at the banks of its customers. */

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

/** Closes a dispute: the bank returns the money (`won`) or keeps it (`lost`). */
export function closeDispute({ db, runtime }: Parts, ref: string, end: 'won' | 'lost'): Promise<void> {
  return db.transact(async (tx) => {
    const closed = await tx.q
      .updateTable('sandbox_disputes')
      .set({ status: end })
      .where('intent_id', '=', ref)
      .returningAll()
      .executeTakeFirstOrThrow()
    await sendDispute(tx, runtime, closed, end === 'won' ? 'failed' : 'succeeded')
  })
}
