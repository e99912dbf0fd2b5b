import type { Selectable } from 'kysely'
import type { PaymentMethod } from '../../../protocol/contract/consumer-payments.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { MethodDetails } from '../processors/processor.ts'

/** Rows of saved payment methods. */
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

/** Lists a user's saved methods, the default first, then the newest. */
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

/** A query for the customer at the processor with whom a user has saved a method. It has no row if the method is not saved. */
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

/** Under the customer's lock. */
export function methodByRef(tx: Tx, customerId: number, ref: string): Promise<MethodRow | undefined> {
  return tx.q
    .selectFrom('payment_methods')
    .selectAll()
    .where('customer_id', '=', customerId)
    .where('ref', '=', ref)
    .executeTakeFirst()
}

/** Makes a method the default, now or once it is saved. Under the customer's lock. */
export async function makeDefault(tx: Tx, { id, customer_id, state }: MethodRow): Promise<void> {
  const methods = tx.q.updateTable('payment_methods')
  if (state === 'saved')
    await methods
      .set({ is_default: 0 })
      .where('customer_id', '=', customer_id)
      .where('state', '=', 'saved')
      .execute()
  await methods.set({ is_default: 1 }).where('id', '=', id).execute()
}

/** Makes the newest saved method the default if there is none. Under the customer's lock. */
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

/** Stores the processor's data of a method, and its state. Under the customer's lock. */
export async function storeMethod(
  tx: Tx,
  row: MethodRow,
  { ref, type, brand, last4, expMonth, expYear }: MethodDetails,
  state: 'saved' | 'removing',
): Promise<void> {
  const details = { ref, type, brand, last4, exp_month: expMonth, exp_year: expYear }
  await tx.q
    .updateTable('payment_methods')
    .set({ ...details, state, is_default: 0 })
    .where('id', '=', row.id)
    .execute()
  if (state === 'removing') return
  if (row.is_default === 1) await makeDefault(tx, { ...row, state })
  else await keepDefault(tx, row.customer_id)
}
