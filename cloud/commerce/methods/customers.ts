import type { Selectable } from 'kysely'
import { lockUser } from '../../platform/credentials/lock-user.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule } from '../../platform/work/queue.ts'
import { begin, erase, keyOf, MoneyOperations, readOperation, setGoal, workOf } from '../money/operations.ts'
import { tryNow } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { firstMethod } from './method-rows.ts'

/** Users as the card processor knows them. */
export type CustomerRow = Selectable<Tables['processor_customers']>

/** A customer whom the processor has confirmed. */
export type Customer = CustomerRow & { ref: string }

/**
 * Locks a customer, and after a former guest's customer also that of the account which has its methods: changes of one user's
 * methods follow one another. Undefined if the customer is gone.
 */
export async function lockCustomer(tx: Tx, customerId: number): Promise<CustomerRow | undefined> {
  const { q } = tx
  const customer = await tx
    .forUpdate(q.selectFrom('processor_customers').selectAll().where('id', '=', customerId))
    .executeTakeFirst()
  if (!customer) return undefined
  const holders = q.selectFrom('payment_methods').select('user_id').where('customer_id', '=', customerId)
  await tx
    .forUpdate(
      q
        .selectFrom('processor_customers')
        .select('id')
        .where('user_id', 'in', holders)
        .where('user_id', '<>', customer.user_id)
        .where('processor', '=', customer.processor),
    )
    .execute()
  return customer
}

const findCustomer = (q: Queries, id: number): Promise<CustomerRow | undefined> =>
  q.selectFrom('processor_customers').selectAll().where('id', '=', id).executeTakeFirst()

/** Creates a customer, and removes it with all of its saved methods. */
export const customers = new MoneyOperations<CustomerRow, CustomerRow, string>({
  name: 'customer',
  find: findCustomer,
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
 * one, each method keeps its customer. The default method of `to` stays the default.
 */
export async function moveMethods(
  tx: Tx,
  context: CloudContext,
  { from, to }: { from: number; to: number },
): Promise<void> {
  const customersOf = (userId: number) =>
    tx.q.selectFrom('processor_customers').selectAll().where('user_id', '=', userId).orderBy('id').execute()
  const own = await customersOf(to)
  for (const { id } of await customersOf(from)) {
    const customer = (await lockCustomer(tx, id))!
    const { processor } = customer
    const other = own.find((one) => one.processor === processor)
    if (other) await lockCustomer(tx, other.id)
    // The processor may have the request for a customer without a `ref`, which names the former user.
    else if (isConfirmed(customer))
      await tx.q.updateTable('processor_customers').set({ user_id: to }).where('id', '=', id).execute()
    const methods = tx.q.updateTable('payment_methods').set({ user_id: to }).where('customer_id', '=', id)
    const hasDefault = (await firstMethod(tx, { user_id: to, processor })) !== undefined
    await (hasDefault ? methods.set({ is_default: 0 }) : methods).execute()
    await endFormer(tx, context, { id, holder: to })
  }
}

/**
 * Ends the customer of a former guest if it has no methods, after the time of its unfinished payments. `holder` is the user
 * who had the methods. Under the customer's lock.
 */
export async function endFormer(
  tx: Tx,
  { runtime, settings }: CloudContext,
  { id, holder }: { id: number; holder: number },
): Promise<void> {
  const methods = tx.q.selectFrom('payment_methods').select('id').where('customer_id', '=', id)
  const former = await tx.q
    .selectFrom('processor_customers')
    .select('id')
    .where('id', '=', id)
    .where('user_id', '<>', holder)
    .where((eb) => eb.not(eb.exists(methods)))
    .executeTakeFirst()
  const unfinishedMs = Math.max(settings.paymentHoldMs, settings.paymentAbandonMs)
  if (former) await endCustomer(tx, id, runtime.clock.now() + unfinishedMs)
}

async function endCustomer(tx: Tx, id: number, dueAt: number): Promise<void> {
  await setGoal(tx, (await readOperation(tx.q, 'customer', id))!, 'ended')
  await schedule(tx, workOf('customer'), id, dueAt)
}

/**
 * Forgets a user's methods, in the transaction that erases the user. Returns the customers that `removeCustomers` removes at
 * the processor.
 */
export async function forgetCustomers(tx: Tx, context: CloudContext, userId: number): Promise<number[]> {
  const dueAt = context.runtime.clock.now() + context.settings.paymentRecheckMs
  const rows = await tx.q
    .selectFrom('processor_customers')
    .select(['id', 'user_id'])
    .where((eb) =>
      eb.or([
        eb('user_id', '=', userId),
        // Customers of guests who became this user.
        eb('id', 'in', eb.selectFrom('payment_methods').select('customer_id').where('user_id', '=', userId)),
      ]),
    )
    .execute()
  // In the order of `lockCustomer`: customers of former guests first.
  const customerIds = [false, true].flatMap((isOwn) =>
    rows.filter((row) => (row.user_id === userId) === isOwn).map(({ id }) => id),
  )
  for (const id of customerIds) {
    await lockCustomer(tx, id)
    await endCustomer(tx, id, dueAt)
  }
  const methods = tx.q.selectFrom('payment_methods').select('id').where('user_id', '=', userId)
  await tx.q
    .deleteFrom('money_operations')
    .where('kind', '=', 'method')
    .where('subject', 'in', methods)
    .execute()
  await tx.q.deleteFrom('payment_methods').where('user_id', '=', userId).execute()
  return customerIds
}

/** Removes customers of a deleted user at the processor now. Due work does it if the processor cannot be reached. */
export async function removeCustomers(
  services: MoneyServices,
  customerIds: readonly number[],
): Promise<void> {
  const { context, processor } = services
  const { kysely: q } = context.db
  for (const id of customerIds)
    await tryNow(context, `removal of customer ${id}`, async () => {
      const [row, operation] = [await findCustomer(q, id), await readOperation(q, 'customer', id)]
      if (row?.processor === processor.name && operation)
        await customers.execute(services, row, operation, { by: 'caller' })
    })
}
