import type { Selectable } from 'kysely'
import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import { schedule } from '../../../platform/work/queue.ts'
import type { Tx } from '../../../platform/store/database.ts'
import type { Tables } from '../../../platform/store/schema.ts'
import type { Intent, IntentStatus, ProcessorRefund } from '../processor.ts'

export type IntentRow = Selectable<Tables['sandbox_intents']>
export type SandboxRefundRow = Selectable<Tables['sandbox_refunds']>

export async function readIntent(tx: Tx, ref: string): Promise<IntentRow> {
  const row = await tx
    .forUpdate(tx.q.selectFrom('sandbox_intents').selectAll().where('id', '=', ref))
    .executeTakeFirst()
  if (!row) throw new Error(`the sandbox has no intent ${ref}`)
  return row
}

export const toIntent = (row: IntentRow): Intent => ({
  ref: row.id,
  status: row.status as IntentStatus,
  declineCode: row.decline_code,
  clientSecret: row.client_secret,
})

const eventTypes: Partial<Record<IntentStatus, string>> = {
  requires_action: 'payment_intent.requires_action',
  succeeded: 'payment_intent.succeeded',
  failed: 'payment_intent.payment_failed',
  canceled: 'payment_intent.canceled',
}

/** What the sandbox will say of an intent over the webhook, `delayMs` from now. */
export async function writeEvent(
  tx: Tx,
  runtime: Runtime,
  intent: IntentRow,
  delayMs: number,
): Promise<void> {
  const type = eventTypes[intent.status as IntentStatus]
  if (type === undefined) return
  await insertEvent(tx, runtime, type, delayMs, {
    id: intent.id,
    amount: intent.amount,
    status: intent.status,
    decline_code: intent.decline_code,
    client_secret: intent.client_secret,
    metadata: JSON.parse(intent.metadata) as unknown,
  })
}

export async function readSandboxRefund(tx: Tx, ref: string): Promise<SandboxRefundRow> {
  const row = await tx
    .forUpdate(tx.q.selectFrom('sandbox_refunds').selectAll().where('id', '=', ref))
    .executeTakeFirst()
  if (!row) throw new Error(`the sandbox has no refund ${ref}`)
  return row
}

export const toRefund = ({ id, status, failure_reason }: SandboxRefundRow): ProcessorRefund => ({
  ref: id,
  status: status as ProcessorRefund['status'],
  failureReason: failure_reason,
})

/** A refund that was under way has arrived, and the sandbox says so. */
export async function completeRefund(tx: Tx, runtime: Runtime, refund: SandboxRefundRow): Promise<void> {
  if (refund.status !== 'pending') return
  const status = 'succeeded'
  await tx.q.updateTable('sandbox_refunds').set({ status }).where('id', '=', refund.id).execute()
  await insertEvent(tx, runtime, 'refund.updated', 0, {
    id: refund.id,
    amount: refund.amount,
    status,
    failure_reason: null,
    payment_intent: refund.intent_id,
    metadata: JSON.parse(refund.metadata) as unknown,
  })
}

async function insertEvent(
  tx: Tx,
  { clock, random }: Runtime,
  type: string,
  delayMs: number,
  object: Record<string, unknown>,
): Promise<void> {
  const id = `evt_${randomHex(random, 12)}`
  const now = clock.now()
  const body = JSON.stringify({ id, type, created: Math.floor(now / 1000), data: { object } })
  await tx.q.insertInto('sandbox_events').values({ id, body, delivered_at: null, created_at: now }).execute()
  await schedule(tx, 'sandbox.event', id, now + delayMs)
}

/** Moves an intent from one status to another and announces it; returns it as it is then. */
export async function moveIntent(
  tx: Tx,
  runtime: Runtime,
  intent: IntentRow,
  from: readonly IntentStatus[],
  to: IntentStatus,
  delayMs: number,
): Promise<IntentRow> {
  if (!from.includes(intent.status as IntentStatus)) return intent
  const moved = { ...intent, status: to }
  await tx.q.updateTable('sandbox_intents').set({ status: to }).where('id', '=', intent.id).execute()
  await writeEvent(tx, runtime, moved, delayMs)
  return moved
}
