import type { Selectable } from 'kysely'
import type { PaymentMethod } from '../../../protocol/contract/consumer-payments.ts'
import type { CloudContext } from '../../platform/context.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import { schedule } from '../../platform/work/queue.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import { identityOf, type CardProcessor } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'

export type CustomerRow = Selectable<Tables['processor_customers']>
export type MethodRow = Selectable<Tables['payment_methods']>

export function viewMethod(row: MethodRow): PaymentMethod {
  return {
    payment_method_id: row.ref,
    type: row.type!,
    brand: row.brand!,
    last4: row.last4!,
    exp_month: row.exp_month!,
    exp_year: row.exp_year!,
    is_default: row.is_default === 1,
    created_at: timestamp(row.created_at),
  }
}

/** What a user has saved, the default first, then the newest. */
export async function listMethods(q: Queries, userId: number, processor: string): Promise<PaymentMethod[]> {
  const rows = await q
    .selectFrom('payment_methods')
    .selectAll()
    .where('user_id', '=', userId)
    .where('processor', '=', processor)
    .where('state', '=', 'saved')
    .orderBy('is_default', 'desc')
    .orderBy('id', 'desc')
    .execute()
  return rows.map(viewMethod)
}

interface SavedMethod {
  userId: number
  processor: string
  method: string
}

/** The customer at the processor with whom a user has saved a method, as a query; without a row where it is not saved. */
export const customerOfMethod = (q: Queries, { userId, processor, method }: SavedMethod) =>
  q
    .selectFrom('payment_methods as m')
    .innerJoin('processor_customers as c', 'c.id', 'm.customer_id')
    .select('c.ref')
    .where('m.user_id', '=', userId)
    .where('m.processor', '=', processor)
    .where('m.ref', '=', method)
    .where('m.state', '=', 'saved')
    .limit(1)

/** Changes of a customer's methods come one after the other. Undefined where the customer is gone. */
export function lockCustomer(tx: Tx, customerId: number): Promise<CustomerRow | undefined> {
  return tx
    .forUpdate(tx.q.selectFrom('processor_customers').selectAll().where('id', '=', customerId))
    .executeTakeFirst()
}

/** Under the customer's lock. */
export function methodByRef(tx: Tx, customerId: number, ref: string): Promise<MethodRow | undefined> {
  return tx.q
    .selectFrom('payment_methods')
    .selectAll()
    .where('customer_id', '=', customerId)
    .where('ref', '=', ref)
    .executeTakeFirst()
}

/**
 * Records that a method is to be saved; `save-method.ts` saves it. One that was about to go stays, unless its removal has
 * begun. Under the customer's lock.
 */
export async function insertSaving(
  tx: Tx,
  { runtime }: CloudContext,
  customer: Pick<CustomerRow, 'id' | 'user_id' | 'processor'>,
  { ref, isDefault, dueAt }: { ref: string; isDefault: boolean; dueAt: number },
): Promise<MethodRow> {
  await tx.q
    .deleteFrom('processor_removals')
    .where('customer_id', '=', customer.id)
    .where('method', '=', ref)
    .where('is_begun', '=', 0)
    .execute()
  const row = await tx.q
    .insertInto('payment_methods')
    .values({
      customer_id: customer.id,
      user_id: customer.user_id,
      processor: customer.processor,
      ref,
      state: 'saving',
      is_default: isDefault ? 1 : 0,
      created_at: runtime.clock.now(),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await schedule(tx, 'method.save', row.id, dueAt)
  return row
}

/** A method has paid, and its customer wished to keep it: it is saved after the commit. Nothing where they are gone. */
export async function saveAfterPayment(
  tx: Tx,
  context: CloudContext,
  { userId, processor, ref }: { userId: number; processor: string; ref: string },
): Promise<void> {
  const known = await tx.q
    .selectFrom('processor_customers')
    .select('id')
    .where('user_id', '=', userId)
    .where('processor', '=', processor)
    .executeTakeFirst()
  const customer = known && (await lockCustomer(tx, known.id))
  if (!customer || (await methodByRef(tx, customer.id, ref))) return
  await insertSaving(tx, context, customer, { ref, isDefault: false, dueAt: context.runtime.clock.now() })
}

/** Makes one of a customer's methods the only default. Under the customer's lock. */
export async function makeDefault(tx: Tx, { id, customer_id }: MethodRow): Promise<void> {
  const saved = tx.q.updateTable('payment_methods').where('state', '=', 'saved')
  await saved.set({ is_default: 0 }).where('customer_id', '=', customer_id).execute()
  await saved.set({ is_default: 1 }).where('id', '=', id).execute()
}

/** The newest of those that are left is the default where none is. Under the customer's lock. */
export async function keepDefault(tx: Tx, customerId: number): Promise<void> {
  const first = await tx.q
    .selectFrom('payment_methods')
    .selectAll()
    .where('customer_id', '=', customerId)
    .where('state', '=', 'saved')
    .orderBy('is_default', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (first && first.is_default === 0) await makeDefault(tx, first)
}

/** A method that is no longer ours, or the customer with all of them, goes at the processor, too (`remove-method.ts`). */
export async function insertRemoval(
  tx: Tx,
  { runtime, settings }: CloudContext,
  customer: CustomerRow,
  method: string | null,
): Promise<void> {
  const { id } = await tx.q
    .insertInto('processor_removals')
    .values({
      processor: customer.processor,
      customer_ref: customer.ref,
      customer_id: customer.id,
      user_id: customer.user_id,
      begun_at: customer.created_at,
      method,
      is_begun: 0,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  // Whoever asked for it tries at once.
  await schedule(tx, 'removal', id, runtime.clock.now() + settings.paymentRecheckMs)
}

/** A user as the processor knows them. */
export interface Customer {
  id: number
  ref: string
  created_at: number
}

/**
 * The user's customer at the processor, made with the first need for one: recorded first, then asked for under the row's
 * key, as often as it takes. Throws `user_not_found` of one who has been deleted, `ProcessorUnavailable`.
 */
export async function ensureCustomer(services: MoneyServices, userId: number): Promise<Customer> {
  const { context, processor } = services
  const { id, ref, created_at } = await context.db.transact((tx) => begin(tx, services, userId))
  if (ref !== null) return { id, ref, created_at }
  context.checkpoint('customer.before-processor')
  const made = await processor.createCustomer(customerRequest(id, created_at, userId))
  context.checkpoint('customer.after-processor')
  await context.db.kysely
    .updateTable('processor_customers')
    .set({ ref: made })
    .where('id', '=', id)
    .where('ref', 'is', null)
    .execute()
  return { id, ref: made, created_at }
}

/** The same words whenever they are said. */
export const customerRequest = (
  id: number,
  begunAt: number,
  userId: number,
): Parameters<CardProcessor['createCustomer']>[0] => ({
  idempotencyKey: `customer:${identityOf({ id, created_at: begunAt })}`,
  begunAt,
  userId,
})

async function begin(tx: Tx, { context, processor }: MoneyServices, userId: number): Promise<CustomerRow> {
  // A user who is being deleted gets no customer any more that nobody would delete.
  await lockUser(tx, userId)
  const known = await tx.q
    .selectFrom('processor_customers')
    .selectAll()
    .where('user_id', '=', userId)
    .where('processor', '=', processor.name)
    .executeTakeFirst()
  return (
    known ??
    tx.q
      .insertInto('processor_customers')
      .values({ user_id: userId, processor: processor.name, created_at: context.runtime.clock.now() })
      .returningAll()
      .executeTakeFirstOrThrow()
  )
}

/** With the user, in the transaction that erases them: whoever they were at a processor goes there after the commit. */
export async function forgetCustomers(tx: Tx, context: CloudContext, userId: number): Promise<void> {
  const customers = await tx.q
    .selectFrom('processor_customers')
    .selectAll()
    .where('user_id', '=', userId)
    .execute()
  for (const customer of customers) await insertRemoval(tx, context, customer, null)
  await tx.q.deleteFrom('payment_methods').where('user_id', '=', userId).execute()
  await tx.q.deleteFrom('processor_customers').where('user_id', '=', userId).execute()
}
