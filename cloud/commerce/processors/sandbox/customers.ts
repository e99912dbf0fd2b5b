import { randomHex } from '../../../../protocol/model/ids.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import type { Tx } from '../../../platform/store/database.ts'
import {
  MethodRefused,
  type AttachRequest,
  type CustomerRequest,
  type MethodDetails,
  type SetupIntent,
} from '../processor.ts'
import { cardOf } from './cards.ts'

/** The sandbox's customers, and what they have saved. */
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
  await tx.q.deleteFrom('sandbox_methods').where('customer_id', '=', ref).execute()
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

/** A name stays the method's id: whoever has saved `pm_card_visa` finds it under that name. */
export async function attach(tx: Tx, { method, customer }: AttachRequest): Promise<MethodDetails> {
  await requireCustomer(tx, customer)
  const card = cardOf(method)
  if (card?.brand === undefined || card.last4 === undefined) throw new MethodRefused(null)
  if (card.isRefused) throw new MethodRefused(card.declineCode ?? null)
  await tx.q
    .insertInto('sandbox_methods')
    .values({ customer_id: customer, method })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return { ref: method, type: 'card', brand: card.brand, last4: card.last4, expMonth: 12, expYear: 2034 }
}

export async function detach(
  tx: Tx,
  { method, customer }: Pick<AttachRequest, 'method' | 'customer'>,
): Promise<void> {
  await tx.q
    .deleteFrom('sandbox_methods')
    .where('customer_id', '=', customer)
    .where('method', '=', method)
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
