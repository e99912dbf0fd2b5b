import { createHash } from 'node:crypto'
import type { SetupIntentSecret, PaymentMethod } from '../../../protocol/contract/consumer-payments.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { schedule, unschedule } from '../../platform/work/queue.ts'
import {
  begin,
  erase,
  keyOf,
  markAsked,
  MoneyOperations,
  readOperation,
  setGoal,
  workOf,
  type Answer,
  type Operation,
} from '../money/operations.ts'
import {
  identityOf,
  MethodRefused,
  orUnavailable,
  refusal,
  tryNow,
  type MethodDetails,
} from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'
import { endFormer, ensureCustomer, lockCustomer, type Customer, type CustomerRow } from './customers.ts'
import {
  keepDefault,
  makeDefault,
  methodByRef,
  storeMethod,
  viewMethod,
  type Holder,
  type MethodRow,
} from './method-rows.ts'

/** A method with its customer at the processor. */
type FoundMethod = MethodRow & { customer_ref: string | null }

const findMethod = (q: Queries, id: number): Promise<FoundMethod | undefined> =>
  q
    .selectFrom('payment_methods as m')
    .innerJoin('processor_customers as c', 'c.id', 'm.customer_id')
    .selectAll('m')
    .select('c.ref as customer_ref')
    .where('m.id', '=', id)
    .executeTakeFirst()

/** Attaches a method to its customer at the processor, and detaches it. */
export const methods = new MoneyOperations<FoundMethod, MethodRow, MethodDetails>({
  name: 'method',
  find: findMethod,
  async request(services, operation, method) {
    if (operation.goal === 'done') return attach(services, operation, method)
    // Detaching is permanent: from here on the removal cannot be undone.
    const isAsked = await services.context.db.transact(async (tx) => {
      await lockCustomer(tx, method.customer_id)
      return markAsked(tx, operation)
    })
    if (!isAsked) return null
    // The key finds a method with an unknown id.
    const answer = method.type === null ? await attach(services, operation, method) : undefined
    const ref = answer?.extra?.ref ?? method.ref
    await services.processor.detachMethod({ method: ref, customer: method.customer_ref! })
    return { outcome: 'removed' }
  },
  async lock(tx, { id, customer_id }) {
    if (!(await lockCustomer(tx, customer_id))) return undefined
    return tx.q.selectFrom('payment_methods').selectAll().where('id', '=', id).executeTakeFirst()
  },
  async apply(tx, context, { subject: row, operation, extra: details }) {
    if (operation.state !== 'succeeded') return deleteMethod(tx, context, row)
    if (!details || row.state === 'saved') return
    const twin = await methodByRef(tx, row, details.ref)
    if (!twin || twin.id === row.id)
      return storeMethod(tx, row, details, row.state === 'removing' ? 'removing' : 'saved')
    // A token for a method that is saved already, or will be.
    await deleteMethod(tx, context, row)
    if (row.is_default === 1) await makeDefault(tx, twin)
    if (twin.state === 'saving')
      await storeMethod(tx, { ...twin, is_default: row.is_default }, details, 'saved')
  },
})

async function attach(
  { processor }: MoneyServices,
  operation: Operation,
  { ref: method, customer_ref: customer }: FoundMethod,
): Promise<Answer<MethodDetails>> {
  try {
    const extra = await processor.attachMethod({
      idempotencyKey: keyOf(operation),
      method,
      customer: customer!,
    })
    return { outcome: 'succeeded', extra }
  } catch (error) {
    if (error instanceof MethodRefused) return { outcome: 'failed', reason: error.declineCode }
    throw error
  }
}

async function deleteMethod(
  tx: Tx,
  context: CloudContext,
  { id, customer_id, user_id }: MethodRow,
): Promise<void> {
  await tx.q.deleteFrom('payment_methods').where('id', '=', id).execute()
  await erase(tx, 'method', id)
  await endFormer(tx, context, { id: customer_id, holder: user_id })
}

/**
 * Lets a user enter a method in the processor's own form (C §4.4). An unused intent has no effect, so nothing is recorded.
 * Throws `processor_unavailable`.
 */
export async function createSetupIntent(
  services: MoneyServices,
  userId: number,
  requestKey: string | undefined,
): Promise<SetupIntentSecret> {
  const { context, processor } = services
  const customer = await orUnavailable(ensureCustomer(services, userId))
  // The processor bounds the length of a key.
  const name = createHash('sha256')
    .update(requestKey ?? uuidv7(context.runtime))
    .digest('hex')
  const { ref, clientSecret, status } = await orUnavailable(
    processor.createSetupIntent({
      idempotencyKey: `setup:${identityOf(customer)}:${name}`,
      customer: customer.ref,
    }),
  )
  return { setup_intent_id: ref, client_secret: clientSecret, status }
}

interface SaveRequest {
  userId: number
  method: string
  setDefault: boolean
}

/** How many methods a user can save. */
const MAX_METHODS = 50

/** Saves a method. Throws `payment_method_not_found`, `card_declined`, `processor_unavailable`. */
export async function saveMethod(services: MoneyServices, request: SaveRequest): Promise<PaymentMethod> {
  const { context, processor } = services
  if (!processor.savesMethod(request.method)) throw new ApiError('payment_method_not_found')
  const customer = await orUnavailable(ensureCustomer(services, request.userId))
  const beginSaving = () => context.db.transact((tx) => findOrBegin(tx, services, customer, request))
  let row = await beginSaving()
  if (row.state === 'removing') {
    // The processor may have been asked to detach the method. Then it is detached before it is saved again.
    await orUnavailable(executeMethod(services, row.id))
    row = await beginSaving()
  }
  if (row.state === 'saved') return viewMethod(row)
  const answer = await orUnavailable(executeMethod(services, row.id))
  if (answer?.outcome === 'failed') throw refusal(answer.reason ?? null)
  const ref = answer?.extra?.ref ?? row.ref
  const saved = await context.db.transact((tx) => methodByRef(tx, row, ref))
  if (saved?.state !== 'saved') throw new ApiError('payment_method_not_found')
  return viewMethod(saved)
}

/** Asks the processor on behalf of a caller. Returns its answer; undefined if no question was left. */
async function executeMethod(
  services: MoneyServices,
  id: number,
): Promise<Answer<MethodDetails> | undefined> {
  const { kysely: q } = services.context.db
  const [found, operation] = [await findMethod(q, id), await readOperation(q, 'method', id)]
  return found && operation && methods.execute(services, found, operation, { by: 'caller' })
}

/** Finds a method of a user, at whichever customer, and locks its customer. */
async function lockMethod(tx: Tx, holder: Holder, ref: string): Promise<MethodRow | undefined> {
  const found = await methodByRef(tx, holder, ref)
  if (!found || !(await lockCustomer(tx, found.customer_id))) return undefined
  return methodByRef(tx, holder, ref)
}

async function findOrBegin(
  tx: Tx,
  { context }: MoneyServices,
  own: Customer,
  { method: ref, setDefault }: SaveRequest,
): Promise<MethodRow> {
  const saved = await lockMethod(tx, own, ref)
  const customer = await lockCustomer(tx, own.id)
  if (!customer) throw new ApiError('user_not_found')
  // Another request may have begun in the meantime.
  const known = saved ?? (await methodByRef(tx, own, ref))
  if (known) {
    const row = known.state === 'removing' ? await takeBack(tx, context, known) : known
    if (!setDefault || row.state === 'removing') return row
    await makeDefault(tx, row)
    return { ...row, is_default: 1 }
  }
  const { count } = await tx.q
    .selectFrom('payment_methods')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', customer.user_id)
    .where('processor', '=', customer.processor)
    .where('state', '<>', 'removing')
    .executeTakeFirstOrThrow()
  if (count >= MAX_METHODS)
    throw new ApiError('validation_error', `${MAX_METHODS} payment methods are saved already.`)
  return beginMethod(tx, context, customer, { ref, isDefault: setDefault })
}

/** Undoes the removal of a method, unless the processor may have been asked. Under the customer's lock. */
async function takeBack(tx: Tx, { runtime }: CloudContext, row: MethodRow): Promise<MethodRow> {
  const operation = await readOperation(tx.q, 'method', row.id)
  if (!operation || operation.in_doubt === 1) return row
  const state = operation.state === 'succeeded' ? 'saved' : 'saving'
  await tx.q.updateTable('payment_methods').set({ state }).where('id', '=', row.id).execute()
  await setGoal(tx, operation, 'done')
  if (state === 'saved') await unschedule(tx, workOf('method'), row.id)
  else await schedule(tx, workOf('method'), row.id, runtime.clock.now())
  await keepDefault(tx, row)
  return tx.q.selectFrom('payment_methods').selectAll().where('id', '=', row.id).executeTakeFirstOrThrow()
}

/** Starts to save a method. Under the customer's lock. */
async function beginMethod(
  tx: Tx,
  context: CloudContext,
  { id, user_id, processor }: CustomerRow,
  { ref, isDefault, dueAt }: { ref: string; isDefault: boolean; dueAt?: number },
): Promise<MethodRow> {
  const now = context.runtime.clock.now()
  const row = await tx.q
    .insertInto('payment_methods')
    .values({
      customer_id: id,
      user_id,
      processor,
      ref,
      state: 'saving',
      is_default: isDefault ? 1 : 0,
      created_at: now,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await begin(tx, context, { kind: 'method', subject: row.id, processor, started_at: now }, dueAt)
  return row
}

/**
 * Starts to save a method that has paid, if its customer asked for that. Does nothing if the customer is
 * gone.
 */
export async function saveAfterPayment(
  tx: Tx,
  context: CloudContext,
  { userId, processor, ref }: { userId: number; processor: string; ref: string },
): Promise<void> {
  const holder = { user_id: userId, processor }
  const saved = await lockMethod(tx, holder, ref)
  const own = await tx.q
    .selectFrom('processor_customers')
    .select('id')
    .where('user_id', '=', userId)
    .where('processor', '=', processor)
    .executeTakeFirst()
  const customer = own && (await lockCustomer(tx, own.id))
  if (!customer) return
  const method = saved ?? (await methodByRef(tx, holder, ref))
  if (method?.state === 'removing') await takeBack(tx, context, method)
  const dueAt = context.runtime.clock.now()
  if (!method) await beginMethod(tx, context, customer, { ref, isDefault: false, dueAt })
}

/** Saves the methods with which a user has just paid. Due work saves them if the processor cannot be reached. */
export async function savePaidMethods(services: MoneyServices, userId: number): Promise<void> {
  const { context, processor } = services
  const rows = await context.db.kysely
    .selectFrom('payment_methods')
    .select('id')
    .where('state', '=', 'saving')
    .where('user_id', '=', userId)
    .where('processor', '=', processor.name)
    .execute()
  for (const { id } of rows) await tryNow(context, `payment method ${id}`, () => executeMethod(services, id))
}

/** Removes a saved method, here at once and then at the processor. Throws `payment_method_not_found`. */
export async function removeMethod(
  services: MoneyServices,
  { userId, method }: { userId: number; method: string },
): Promise<void> {
  const { context, processor } = services
  const id = await context.db.transact(async (tx) => {
    const removed = await lockMethod(tx, { user_id: userId, processor: processor.name }, method)
    if (!removed || removed.state === 'removing') throw new ApiError('payment_method_not_found')
    await tx.q
      .updateTable('payment_methods')
      .set({ state: 'removing', is_default: 0 })
      .where('id', '=', removed.id)
      .execute()
    await setGoal(tx, (await readOperation(tx.q, 'method', removed.id))!, 'ended')
    const dueAt = context.runtime.clock.now() + context.settings.paymentRecheckMs
    await schedule(tx, workOf('method'), removed.id, dueAt)
    await keepDefault(tx, removed)
    return removed.id
  })
  await tryNow(context, `removal of method ${id}`, () => executeMethod(services, id))
}
