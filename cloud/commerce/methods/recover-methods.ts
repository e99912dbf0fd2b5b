import { ApiError } from '../../platform/api-error.ts'
import type { MethodRow } from './method-rows.ts'
import { ProcessorUnavailable } from '../processors/processor.ts'
import { turn } from '../processors/reach.ts'
import { carryOutRemoval } from './remove-method.ts'
import { finishSaving } from './save-method.ts'
import type { MoneyServices } from '../services.ts'

const BATCH = 100

/** Saves and removes at the processor what was left unfinished: after a crash, or while it was out of reach. */
export async function recoverMethods(services: MoneyServices): Promise<void> {
  const { context, processor } = services
  const now = context.runtime.clock.now()
  const q = context.db.kysely
  for (const row of await savings(services))
    await turn(services, `payment method ${row.id}`, () => goOnSaving(services, row))
  const removals = await q
    .selectFrom('processor_removals')
    .selectAll()
    .where('processor', '=', processor.name)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(BATCH)
    .execute()
  for (const row of removals)
    await turn(services, `removal ${row.id} at the processor`, () => carryOutRemoval(services, row))
}

/** The methods with which a user has just paid, and that are to be kept. Whatever hinders it is left to the recovery. */
export async function savePaidMethods(services: MoneyServices, userId: number): Promise<void> {
  for (const row of await savings(services, userId))
    await turn(services, `payment method ${row.id}`, () => goOnSaving(services, row))
}

function savings({ context, processor }: MoneyServices, userId?: number): Promise<MethodRow[]> {
  return context.db.kysely
    .selectFrom('payment_methods')
    .selectAll()
    .where('due_at', 'is not', null)
    .where('due_at', '<=', context.runtime.clock.now())
    .where('processor', '=', processor.name)
    .$if(userId !== undefined, (rows) => rows.where('user_id', '=', userId!))
    .orderBy('due_at')
    .limit(BATCH)
    .execute()
}

async function goOnSaving(services: MoneyServices, row: MethodRow): Promise<void> {
  const { db, runtime, settings } = services.context
  try {
    await finishSaving(services, row)
  } catch (error) {
    // One that its issuer refuses is forgotten already.
    if (error instanceof ApiError) return
    if (error instanceof ProcessorUnavailable)
      await db.kysely
        .updateTable('payment_methods')
        .set({
          attempts: row.attempts + 1,
          due_at: runtime.clock.now() + settings.paymentRecheckMs * 2 ** Math.min(row.attempts, 6),
        })
        .where('id', '=', row.id)
        .where('state', '=', 'saving')
        .execute()
    throw error
  }
}
