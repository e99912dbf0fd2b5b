import type { Selectable } from 'kysely'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule } from '../../platform/work/queue.ts'
import { begin, erase, keyOf, MoneyOperations, readOperation, setGoal, workOf } from '../money/operations.ts'
import { tryNow } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'

/** Users as the card processor knows them. */
export type CustomerRow = Selectable<Tables['processor_customers']>

/** A customer whom the processor has confirmed. */
export type Customer = CustomerRow & { ref: string }

/** Locks a customer: changes of its methods follow one another. Undefined if the customer is gone. */
export function lockCustomer(tx: Tx, customerId: number): Promise<CustomerRow | undefined> {
  return tx
    .forUpdate(tx.q.selectFrom('processor_customers').selectAll().where('id', '=', customerId))
    .executeTakeFirst()
}

/** Creates a customer, and removes it with all of its saved methods. */
export const customers = new MoneyOperations<CustomerRow, CustomerRow, string>({
  name: 'customer',
  find: (q, id) => q.selectFrom('processor_customers').selectAll().where('id', '=', id).executeTakeFirst(),
  async request({ processor }, operation, { ref: known, user_id: userId, created_at: startedAt }) {
    // The key finds a customer with an unknown id.
    const ref =
      known ?? (await processor.createCustomer({ idempotencyKey: keyOf(operation), startedAt, userId }))
    if (operation.goal === 'done') return { outcome: 'succeeded', extra: ref }
    await processor.removeCustomer(ref)
    return { outcome: 'removed' }
  },
  lock: (tx, { id }) => lockCustomer(tx, id),
  async apply(tx, _context, { subject: { id }, operation, extra: ref }) {
    if (operation.state === 'canceled') {
      await tx.q.deleteFrom('processor_customers').where('id', '=', id).execute()
      await erase(tx, 'customer', id)
    } else if (ref !== undefined)
      await tx.q.updateTable('processor_customers').set({ ref }).where('id', '=', id).execute()
  },
})

/**
 * The user's customer at the processor, created on first use. Throws `user_not_found` for a deleted user,
 * `ProcessorUnavailable`.
 */
export async function ensureCustomer(services: MoneyServices, userId: number): Promise<Customer> {
  const { db } = services.context
  const known = await db.transact((tx) => findOrBegin(tx, services, userId))
  if (isConfirmed(known)) return known
  const operation = await readOperation(db.kysely, 'customer', known.id)
  await customers.execute(services, known, operation!, { by: 'caller' })
  return db.kysely
    .selectFrom('processor_customers')
    .selectAll()
    .where('id', '=', known.id)
    .$castTo<Customer>()
    .executeTakeFirstOrThrow()
}

const isConfirmed = (customer: CustomerRow): customer is Customer => customer.ref !== null

async function findOrBegin(
  tx: Tx,
  { context, processor }: MoneyServices,
  userId: number,
): Promise<CustomerRow> {
  // A user under deletion gets no new customer: no later step would delete it.
  await lockUser(tx, userId)
  const known = await tx.q
    .selectFrom('processor_customers')
    .selectAll()
    .where('user_id', '=', userId)
    .where('processor', '=', processor.name)
    .executeTakeFirst()
  if (known) return known
  const now = context.runtime.clock.now()
  const row = await tx.q
    .insertInto('processor_customers')
    .values({ user_id: userId, processor: processor.name, created_at: now })
    .returningAll()
    .executeTakeFirstOrThrow()
  const operation = { kind: 'customer', subject: row.id, processor: processor.name, started_at: now } as const
  await begin(tx, context, operation)
  return row
}

/**
 * Gives a user's saved methods to another user. A processor cannot move a method between its customers: if both users have
 * one, each method keeps its customer, and the default method of `to` stays the default.
 */
export async function moveMethods(tx: Tx, { from, to }: { from: number; to: number }): Promise<void> {
  const customersOf = (userId: number) =>
    tx.q.selectFrom('processor_customers').selectAll().where('user_id', '=', userId).orderBy('id').execute()
  const own = await customersOf(to)
  for (const { id } of await customersOf(from)) {
    const customer = (await lockCustomer(tx, id))!
    const methods = tx.q.updateTable('payment_methods').set({ user_id: to }).where('customer_id', '=', id)
    if (own.some(({ processor }) => processor === customer.processor))
      await methods.set({ is_default: 0 }).execute()
    // The processor may have the request for a customer without a `ref`, which names the former user.
    else if (isConfirmed(customer)) {
      await tx.q.updateTable('processor_customers').set({ user_id: to }).where('id', '=', id).execute()
      await methods.execute()
    }
  }
}

/** Forgets a user's methods, in the transaction that erases the user. `removeCustomers` removes them at the processor. */
export async function forgetCustomers(tx: Tx, context: CloudContext, userId: number): Promise<void> {
  const dueAt = context.runtime.clock.now() + context.settings.paymentRecheckMs
  const rows = await tx.q
    .selectFrom('processor_customers')
    .select('id')
    .where((eb) =>
      eb.or([
        eb('user_id', '=', userId),
        // Customers of guests who became this user.
        eb('id', 'in', eb.selectFrom('payment_methods').select('customer_id').where('user_id', '=', userId)),
      ]),
    )
    .execute()
  for (const { id } of rows) {
    await lockCustomer(tx, id)
    const operation = await readOperation(tx.q, 'customer', id)
    await setGoal(tx, operation!, 'ended')
    await schedule(tx, workOf('customer'), id, dueAt)
  }
  const methods = tx.q.selectFrom('payment_methods').select('id').where('user_id', '=', userId)
  await tx.q
    .deleteFrom('money_operations')
    .where('kind', '=', 'method')
    .where('subject', 'in', methods)
    .execute()
  await tx.q.deleteFrom('payment_methods').where('user_id', '=', userId).execute()
}

/** Removes a deleted user at the processor now. Due work does it if the processor cannot be reached. */
export async function removeCustomers(services: MoneyServices, userId: number): Promise<void> {
  const { context, processor } = services
  const rows = await context.db.kysely
    .selectFrom('processor_customers')
    .selectAll()
    .where('user_id', '=', userId)
    .where('processor', '=', processor.name)
    .execute()
  for (const row of rows)
    await tryNow(context, `removal of customer ${row.id}`, async () => {
      const operation = await readOperation(context.db.kysely, 'customer', row.id)
      if (operation) await customers.execute(services, row, operation, { by: 'caller' })
    })
}
