import { createHash } from 'node:crypto'
import type { SetupIntentSecret, PaymentMethod } from '../../../protocol/contract/consumer-payments.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import {
  ensureCustomer,
  insertRemoval,
  insertSaving,
  keepDefault,
  lockCustomer,
  makeDefault,
  methodByRef,
  viewMethod,
  type Customer,
  type MethodRow,
} from './method-rows.ts'
import { finishRemovals } from './remove-method.ts'
import type { MoneyServices } from '../services.ts'
import {
  identityOf,
  orUnavailable,
  MethodRefused,
  processorBackoff,
  refusal,
  requireProcessor,
  tryNow,
  type MethodDetails,
} from '../processors/processor.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Tx } from '../../platform/store/database.ts'
import { unschedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'

/**
 * Lets a user enter a method in the processor's own form (C §4.4). An intent that is never used has no effect, so nothing
 * is recorded of it. Throws `processor_unavailable`.
 */
export async function createSetupIntent(
  services: MoneyServices,
  userId: number,
  requestKey: string | undefined,
): Promise<SetupIntentSecret> {
  const { context, processor } = services
  const customer = await orUnavailable(ensureCustomer(services, userId))
  // Processors' keys have no room for any text: this one's length is known.
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

export interface SaveRequest {
  userId: number
  method: string
  setDefault: boolean
}

/** How many methods a user can save. */
const MAX_METHODS = 50

/**
 * Saves a method with the user's customer at the processor: it is recorded, then attached there under the row's key, then
 * it is saved. What is interrupted is taken up as due work. Throws `payment_method_not_found`, `card_declined`,
 * `processor_unavailable`.
 */
export async function saveMethod(services: MoneyServices, request: SaveRequest): Promise<PaymentMethod> {
  const { context, processor } = services
  if (!processor.savesMethod(request.method)) throw new ApiError('payment_method_not_found')
  const customer = await orUnavailable(ensureCustomer(services, request.userId))
  const begun = await context.db.transact((tx) => begin(tx, services, customer, request))
  if (begun.state === 'saved') return viewMethod(begun)
  const saved = await orUnavailable(finishSaving(services, begun))
  if (!saved) throw new ApiError('payment_method_not_found')
  return viewMethod(saved)
}

async function begin(
  tx: Tx,
  { context }: MoneyServices,
  { id }: Customer,
  { method, setDefault }: SaveRequest,
): Promise<MethodRow> {
  const customer = await lockCustomer(tx, id)
  if (!customer) throw new ApiError('user_not_found')
  const known = await methodByRef(tx, id, method)
  if (known) return setDefault ? markDefault(tx, known) : known
  const { count } = await tx.q
    .selectFrom('payment_methods')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('customer_id', '=', id)
    .executeTakeFirstOrThrow()
  if (count >= MAX_METHODS)
    throw new ApiError('validation_error', `${MAX_METHODS} payment methods are saved already.`)
  const dueAt = context.runtime.clock.now() + context.settings.paymentRecheckMs
  return insertSaving(tx, context, customer, { ref: method, isDefault: setDefault, dueAt })
}

async function markDefault(tx: Tx, known: MethodRow): Promise<MethodRow> {
  if (known.state === 'saved') await makeDefault(tx, known)
  else await tx.q.updateTable('payment_methods').set({ is_default: 1 }).where('id', '=', known.id).execute()
  return { ...known, is_default: 1 }
}

/**
 * Attaches a method that is being saved, and saves it; a removal of it that has begun is brought to its end first. Undefined
 * where it was removed meanwhile. One that is refused is forgotten; throws `card_declined` or `payment_method_not_found` then.
 */
export async function finishSaving(services: MoneyServices, row: MethodRow): Promise<MethodRow | undefined> {
  const { db, checkpoint } = services.context
  const customer = await db.kysely
    .selectFrom('processor_customers')
    .select('ref')
    .where('id', '=', row.customer_id)
    .executeTakeFirst()
  if (!customer || customer.ref === null) return undefined
  await finishRemovals(services, row)
  checkpoint('method.before-processor')
  const details = await attach(services, row, customer.ref)
  checkpoint('method.after-processor')
  if (details instanceof MethodRefused) {
    await db.kysely
      .deleteFrom('payment_methods')
      .where('id', '=', row.id)
      .where('state', '=', 'saving')
      .execute()
    throw refusal(details.declineCode)
  }
  return db.transact((tx) => keep(tx, services, row, details))
}

async function attach(
  { processor }: MoneyServices,
  method: MethodRow,
  customer: string,
): Promise<MethodDetails | MethodRefused> {
  try {
    return await processor.attachMethod({
      idempotencyKey: `method:${identityOf(method)}`,
      method: method.ref,
      customer,
    })
  } catch (error) {
    if (error instanceof MethodRefused) return error
    throw error
  }
}

async function keep(
  tx: Tx,
  { context }: MoneyServices,
  { id, customer_id }: MethodRow,
  details: MethodDetails,
): Promise<MethodRow | undefined> {
  const customer = await lockCustomer(tx, customer_id)
  if (!customer) return undefined
  const row = await tx.q.selectFrom('payment_methods').selectAll().where('id', '=', id).executeTakeFirst()
  const twin = await methodByRef(tx, customer_id, details.ref)
  if (!row) {
    // Removed while it was attached.
    if (!twin) await insertRemoval(tx, context, customer, details.ref)
    return undefined
  }
  if (row.state === 'saved') return row
  if (twin && twin.id !== id) {
    // A token for a method that is saved already, or will be.
    await tx.q.deleteFrom('payment_methods').where('id', '=', id).execute()
    const kept = row.is_default === 1 ? await markDefault(tx, twin) : twin
    return kept.state === 'saved' ? kept : become(tx, kept, details)
  }
  return become(tx, row, details)
}

async function become(tx: Tx, row: MethodRow, details: MethodDetails): Promise<MethodRow> {
  await tx.q
    .updateTable('payment_methods')
    .set({
      ref: details.ref,
      state: 'saved',
      type: details.type,
      brand: details.brand,
      last4: details.last4,
      exp_month: details.expMonth,
      exp_year: details.expYear,
      is_default: 0,
    })
    .where('id', '=', row.id)
    .execute()
  await unschedule(tx, 'method.save', row.id)
  if (row.is_default === 1) await makeDefault(tx, row)
  else await keepDefault(tx, row.customer_id)
  return tx.q.selectFrom('payment_methods').selectAll().where('id', '=', row.id).executeTakeFirstOrThrow()
}

/** Methods whose saving was left unfinished: after a crash, or while the processor was out of reach. */
export const savingWork = (services: MoneyServices): WorkKinds => ({
  'method.save': {
    backoff: processorBackoff(services.context),
    async look({ subject }) {
      const row = await saving(services).where('id', '=', Number(subject)).executeTakeFirst()
      if (row) await goOnSaving(services, row)
      return done
    },
  },
})

/** The methods with which a user has just paid, and that are to be kept. Whatever hinders it is left to due work. */
export async function savePaidMethods(services: MoneyServices, userId: number): Promise<void> {
  const rows = await saving(services)
    .where('user_id', '=', userId)
    .where('processor', '=', services.processor.name)
    .execute()
  for (const row of rows)
    await tryNow(services.context, `payment method ${row.id}`, () => goOnSaving(services, row))
}

const saving = ({ context }: MoneyServices) =>
  context.db.kysely.selectFrom('payment_methods').selectAll().where('state', '=', 'saving')

async function goOnSaving(services: MoneyServices, row: MethodRow): Promise<void> {
  requireProcessor(services.processor, row.processor)
  try {
    await finishSaving(services, row)
  } catch (error) {
    // One that its issuer refuses is forgotten already.
    if (!(error instanceof ApiError)) throw error
  }
}
