import type { Selectable } from 'kysely'
import { ApiError } from '../../platform/api-error.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { customerRequest, insertRemoval, keepDefault, lockCustomer, type MethodRow } from './method-rows.ts'
import { unschedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import { processorBackoff, requireProcessor, tryNow } from '../processors/processor.ts'
import type { MoneyServices } from '../services.ts'

type RemovalRow = Selectable<Tables['processor_removals']>

/** Removes a saved method; it goes at the processor after the commit. Throws `payment_method_not_found`. */
export async function removeMethod(
  services: MoneyServices,
  { userId, method }: { userId: number; method: string },
): Promise<void> {
  const { context, processor } = services
  await context.db.transact(async (tx) => {
    const found = await tx.q
      .selectFrom('payment_methods')
      .select('customer_id')
      .where('user_id', '=', userId)
      .where('processor', '=', processor.name)
      .where('ref', '=', method)
      .executeTakeFirst()
    const customer = found && (await lockCustomer(tx, found.customer_id))
    if (!customer) throw new ApiError('payment_method_not_found')
    const removed = await tx.q
      .deleteFrom('payment_methods')
      .where('customer_id', '=', customer.id)
      .where('ref', '=', method)
      .executeTakeFirst()
    if (removed.numDeletedRows !== 1n) throw new ApiError('payment_method_not_found')
    await keepDefault(tx, customer.id)
    await insertRemoval(tx, context, customer, method)
  })
  await carryOutRemovals(services, userId)
}

/** What a user has removed goes at the processor. What cannot be reached now is left to due work. */
export async function carryOutRemovals(services: MoneyServices, userId: number): Promise<void> {
  const { context, processor } = services
  const rows = await context.db.kysely
    .selectFrom('processor_removals')
    .selectAll()
    .where('user_id', '=', userId)
    .where('processor', '=', processor.name)
    .execute()
  for (const row of rows)
    await tryNow(context, `removal ${row.id} at the processor`, () => carryOutRemoval(services, row))
}

/** Removals that were left unfinished. */
export const removalWork = (services: MoneyServices): WorkKinds => ({
  removal: {
    backoff: processorBackoff(services.context),
    async look({ subject }) {
      const row = await services.context.db.kysely
        .selectFrom('processor_removals')
        .selectAll()
        .where('id', '=', Number(subject))
        .executeTakeFirst()
      if (row) await carryOutRemoval(services, row)
      return done
    },
  },
})

/** Removals of a method that have begun come to their end before it is saved again. Throws `ProcessorUnavailable`. */
export async function finishRemovals(
  services: MoneyServices,
  { customer_id, ref }: Pick<MethodRow, 'customer_id' | 'ref'>,
): Promise<void> {
  const rows = await services.context.db.kysely
    .selectFrom('processor_removals')
    .selectAll()
    .where('customer_id', '=', customer_id)
    .where('method', '=', ref)
    .where('is_begun', '=', 1)
    .execute()
  for (const row of rows) await carryOutRemoval(services, row)
}

/**
 * Under the customer's lock, as whoever saves the method again takes a removal back that has not begun. False where that
 * has happened.
 */
const begin = ({ context }: MoneyServices, { id, customer_id }: RemovalRow): Promise<boolean> =>
  context.db.transact(async (tx) => {
    await lockCustomer(tx, customer_id)
    const begun = await tx.q
      .updateTable('processor_removals')
      .set({ is_begun: 1 })
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirst()
    return begun !== undefined
  })

/** The processor is asked as often as it takes; what is gone there is gone here. Throws `ProcessorUnavailable`. */
async function carryOutRemoval(services: MoneyServices, row: RemovalRow): Promise<void> {
  const { context, processor } = services
  requireProcessor(processor, row.processor)
  context.checkpoint('removal.before-begin')
  if (!(await begin(services, row))) return
  context.checkpoint('removal.before-processor')
  // A customer whose id was never learned is asked for again, under the same key.
  const customer =
    row.customer_ref ??
    (await processor.createCustomer(customerRequest(row.customer_id, row.begun_at, row.user_id)))
  if (row.method === null) await processor.removeCustomer(customer)
  else await processor.detachMethod({ method: row.method, customer })
  context.checkpoint('removal.after-processor')
  await context.db.transact(async (tx) => {
    await tx.q.deleteFrom('processor_removals').where('id', '=', row.id).execute()
    await unschedule(tx, 'removal', row.id)
  })
}
