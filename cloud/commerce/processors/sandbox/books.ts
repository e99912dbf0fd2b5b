import { sql, type Selectable } from 'kysely'
import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import { schedule } from '../../../platform/work/queue.ts'
import type { Tx } from '../../../platform/store/database.ts'
import { statement } from '../../../platform/store/statement.ts'
import type { Tables } from '../../../platform/store/schema.ts'
import {
  MethodRefused,
  paymentOf,
  type Intent,
  type IntentRequest,
  type IntentStatus,
  type ListedRefund,
  type MovesPage,
  type MovesRequest,
  type PaymentsPage,
  type ProcessorRefund,
  type RefundRequest,
  type AttachRequest,
  type CustomerRequest,
  type MethodDetails,
  type SetupIntent,
} from '../processor.ts'
import { cardNamed, cardOf, cardToSave, isOwnId } from './cards.ts'

export type IntentRow = Selectable<Tables['sandbox_intents']>
type SandboxRefundRow = Selectable<Tables['sandbox_refunds']>

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

/** Schedules the webhook event about an intent, `delayMs` from now. */
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

/** All refunds of an intent, requested or external. */
export async function refundsOf(tx: Tx, ref: string): Promise<ListedRefund[]> {
  const rows = await tx.q.selectFrom('sandbox_refunds').selectAll().where('intent_id', '=', ref).execute()
  return rows.map(toListedRefund)
}

const toListedRefund = (row: SandboxRefundRow): ListedRefund => ({
  ...toRefund(row),
  ref: row.id,
  amount: row.amount,
  identity: (JSON.parse(row.metadata) as Partial<RefundRequest['metadata']>).refund_id,
})

type Page = Pick<MovesRequest, 'since' | 'after' | 'limit'>

/** Ids of the objects that the sandbox made since an instant, newest first. */
async function idsSince(
  { q }: Tx,
  name: 'sandbox_intents' | 'sandbox_refunds' | 'sandbox_disputes',
  { since, after, limit }: Page,
): Promise<{ ids: string[]; next: string | null }> {
  const table = sql.table(name)
  const isOlder =
    after === null
      ? sql`true`
      : sql`(created_at, id) < (select created_at, id from ${table} where id = ${after})`
  const { rows: found } = await sql<{ id: string }>`
    select id from ${table} where created_at >= ${since} and ${isOlder}
    order by created_at desc, id desc limit ${limit + 1}`.execute(q)
  // One id above the page size means that there is a next page.
  const ids = found.slice(0, limit).map(({ id }) => id)
  return { ids, next: found.length > limit ? ids.at(-1)! : null }
}

export async function paymentsSince(tx: Tx, page: Page): Promise<PaymentsPage> {
  const { ids, next } = await idsSince(tx, 'sandbox_intents', page)
  if (ids.length === 0) return { payments: [], next }
  const rows = await tx.q.selectFrom('sandbox_intents').selectAll().where('id', 'in', ids).execute()
  const payments = rows.flatMap(({ id, amount, status, created_at, metadata }) => {
    const own = paymentOf(JSON.parse(metadata) as Record<string, unknown>)
    return own ? [{ ...own, ref: id, amount, status: status as IntentStatus, createdAt: created_at }] : []
  })
  return { payments, next }
}

/** Moves of all intents, newest first. */
export async function movesSince(tx: Tx, { kind, ...page }: MovesRequest): Promise<MovesPage> {
  const { q } = tx
  const { ids, next } = await idsSince(tx, kind === 'refund' ? 'sandbox_refunds' : 'sandbox_disputes', page)
  if (ids.length === 0) return { moves: [], next }
  if (kind === 'refund') {
    const rows = await q.selectFrom('sandbox_refunds').selectAll().where('id', 'in', ids).execute()
    return { moves: rows.map((row) => ({ ...toListedRefund(row), intent: row.intent_id })), next }
  }
  const rows = await q.selectFrom('sandbox_disputes').selectAll().where('id', 'in', ids).execute()
  return { moves: rows.map(toListedDispute), next }
}

const toListedDispute = ({
  id,
  intent_id,
  amount,
  status,
}: Selectable<Tables['sandbox_disputes']>): MovesPage['moves'][number] => ({
  ref: id,
  intent: intent_id,
  amount,
  status: status === 'won' ? 'failed' : 'succeeded',
  failureReason: status === 'won' ? 'won' : 'fraudulent',
  identity: undefined,
})

export const toRefund = ({ id, status, failure_reason }: SandboxRefundRow): ProcessorRefund => ({
  ref: id,
  status: status as ProcessorRefund['status'],
  failureReason: failure_reason,
})

/** Completes a pending refund and schedules its event. */
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

export async function insertEvent(
  tx: Tx,
  { clock, random }: Runtime,
  type: string,
  delayMs: number,
  object: Record<string, unknown>,
): Promise<void> {
  const id = `evt_${randomHex(random, 12)}`
  const now = clock.now()
  const body = JSON.stringify({ id, type, created: Math.floor(now / 1000), data: { object } })
  await Promise.all([addEvent(tx.q, { id, body, now }), schedule(tx, 'sandbox.event', id, now + delayMs)])
}

const addEvent = statement((q, { id, body, now }: { id: string; body: string; now: number }) =>
  q.insertInto('sandbox_events').values({ id, body, delivered_at: null, created_at: now }),
)

/** Moves an intent from one status to another and schedules its event. Returns the intent afterwards. */
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

/** The sandbox's customers, and their saved methods. */
export async function insertCustomer(
  tx: Tx,
  { clock, random }: Runtime,
  { idempotencyKey }: CustomerRequest,
): Promise<string> {
  await tx.q
    .insertInto('sandbox_customers')
    .values({
      id: `cus_${randomHex(random, 8)}`,
      idempotency_key: idempotencyKey,
      is_removed: 0,
      created_at: clock.now(),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const { id } = await tx.q
    .selectFrom('sandbox_customers')
    .select('id')
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirstOrThrow()
  return id
}

export async function dropCustomer(tx: Tx, ref: string): Promise<void> {
  await tx.q
    .updateTable('sandbox_methods')
    .set({ customer_id: null })
    .where('customer_id', '=', ref)
    .execute()
  await tx.q.updateTable('sandbox_customers').set({ is_removed: 1 }).where('id', '=', ref).execute()
}

export async function insertSetupIntent(
  tx: Tx,
  { clock, random }: Runtime,
  { idempotencyKey, customer }: { idempotencyKey: string; customer: string },
): Promise<SetupIntent> {
  await requireCustomer(tx, customer)
  const id = `seti_${randomHex(random, 12)}`
  await tx.q
    .insertInto('sandbox_setup_intents')
    .values({
      id,
      idempotency_key: idempotencyKey,
      customer_id: customer,
      client_secret: `${id}_secret_${randomHex(random, 8)}`,
      created_at: clock.now(),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const row = await tx.q
    .selectFrom('sandbox_setup_intents')
    .selectAll()
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirstOrThrow()
  return { ref: row.id, clientSecret: row.client_secret, status: 'requires_payment_method' }
}

type SandboxMethodRow = Selectable<Tables['sandbox_methods']>

/**
 * Saves a card or a wallet token as a method of its own, once per key. A method that is saved already is
 * unchanged.
 */
export async function attach(
  tx: Tx,
  runtime: Runtime,
  { idempotencyKey, method, customer }: AttachRequest,
): Promise<MethodDetails> {
  await requireCustomer(tx, customer)
  if (isOwnId(method)) {
    const own = await methodOf(tx, method, customer)
    if (!own) throw new MethodRefused(null)
    return toDetails(own)
  }
  const named = cardToSave(method)
  const card = cardOf(named?.name ?? '')
  if (named === undefined || card?.brand === undefined) throw new MethodRefused(null)
  if (card.isRefused) throw new MethodRefused(card.declineCode ?? null)
  await tx.q
    .insertInto('sandbox_methods')
    .values({
      id: `pm_${randomHex(runtime.random, 12)}`,
      idempotency_key: idempotencyKey,
      customer_id: customer,
      card: named.name,
      type: named.type,
      created_at: runtime.clock.now(),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const made = await tx.q
    .selectFrom('sandbox_methods')
    .selectAll()
    .where('idempotency_key', '=', idempotencyKey)
    .executeTakeFirstOrThrow()
  return toDetails(made)
}

function toDetails({ id, card: name, type }: SandboxMethodRow): MethodDetails {
  const { brand = '', last4 = '' } = cardOf(name) ?? {}
  return { ref: id, type, brand, last4, expMonth: 12, expYear: 2034 }
}

/** A method that a customer has saved. */
const methodOf = (tx: Tx, id: string, customer: string): Promise<SandboxMethodRow | undefined> =>
  tx.q
    .selectFrom('sandbox_methods')
    .selectAll()
    .where('id', '=', id)
    .where('customer_id', '=', customer)
    .executeTakeFirst()

/**
 * The name of the card that pays an intent; undefined if there is none, or if it belongs to another customer.
 */
export async function cardToCharge(
  tx: Tx,
  { method, type, customer }: Pick<IntentRequest, 'type' | 'customer'> & { method: string },
): Promise<string | undefined> {
  if (!isOwnId(method)) return cardNamed(method, type)
  return customer === null ? undefined : (await methodOf(tx, method, customer))?.card
}

export async function detach(
  tx: Tx,
  { method, customer }: Pick<AttachRequest, 'method' | 'customer'>,
): Promise<void> {
  await tx.q
    .updateTable('sandbox_methods')
    .set({ customer_id: null })
    .where('id', '=', method)
    .where('customer_id', '=', customer)
    .execute()
}

async function requireCustomer(tx: Tx, ref: string): Promise<void> {
  const customer = await tx.q
    .selectFrom('sandbox_customers')
    .select('id')
    .where('id', '=', ref)
    .where('is_removed', '=', 0)
    .executeTakeFirst()
  if (!customer) throw new MethodRefused(null)
}
