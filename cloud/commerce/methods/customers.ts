import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Tx } from '../../platform/store/database.ts'
import { insertRemoval, type CustomerRow } from './method-rows.ts'
import type { CardProcessor } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'

/** A user as the processor knows them. */
export interface Customer {
  id: number
  ref: string
}

/**
 * The user's customer at the processor, made with the first need for one: recorded first, then asked for under the row's
 * key, as often as it takes. Throws `user_not_found` of one who has been deleted, `ProcessorUnavailable`.
 */
export async function ensureCustomer(services: MoneyServices, userId: number): Promise<Customer> {
  const { context, processor } = services
  const { id, ref, created_at } = await context.db.transact((tx) => begin(tx, services, userId))
  if (ref !== null) return { id, ref }
  context.checkpoint('customer.before-processor')
  const made = await processor.createCustomer(customerRequest(id, created_at, userId))
  context.checkpoint('customer.after-processor')
  await context.db.kysely
    .updateTable('processor_customers')
    .set({ ref: made })
    .where('id', '=', id)
    .where('ref', 'is', null)
    .execute()
  return { id, ref: made }
}

/** The same words whenever they are said. */
export const customerRequest = (
  id: number,
  begunAt: number,
  userId: number,
): Parameters<CardProcessor['createCustomer']>[0] => ({ idempotencyKey: `customer:${id}`, begunAt, userId })

async function begin(tx: Tx, { context, processor }: MoneyServices, userId: number): Promise<CustomerRow> {
  // A user who is being deleted gets no customer any more that nobody would delete.
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').select('deleted_at').where('id', '=', userId))
    .executeTakeFirst()
  if (!user || user.deleted_at !== null) throw new ApiError('user_not_found')
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
      .values({
        user_id: userId,
        processor: processor.name,
        ref: null,
        created_at: context.runtime.clock.now(),
      })
      .returningAll()
      .executeTakeFirstOrThrow()
  )
}

/** With the user, in the transaction that erases them: whoever they were at a processor goes there after the commit. */
export async function forgetCustomers(
  tx: Tx,
  context: Pick<CloudContext, 'runtime' | 'settings'>,
  userId: number,
): Promise<void> {
  const customers = await tx.q
    .selectFrom('processor_customers')
    .selectAll()
    .where('user_id', '=', userId)
    .execute()
  for (const customer of customers) await insertRemoval(tx, context, customer, null)
  await tx.q.deleteFrom('payment_methods').where('user_id', '=', userId).execute()
  await tx.q.deleteFrom('processor_customers').where('user_id', '=', userId).execute()
}
