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

/** A user at a processor, who has one default method, at whichever customer. */
export type Holder = Pick<MethodRow, 'user_id' | 'processor'>

const methodsOf = (tx: Tx, { user_id, processor }: Holder) =>
  tx.q
    .selectFrom('payment_methods')
    .selectAll()
    .where('user_id', '=', user_id)
    .where('processor', '=', processor)

export const methodByRef = (tx: Tx, holder: Holder, ref: string): Promise<MethodRow | undefined> =>
  methodsOf(tx, holder).where('ref', '=', ref).executeTakeFirst()

/** The default method of a user; the newest saved one if there is none. Under the lock of a customer of the user. */
export const firstMethod = (tx: Tx, holder: Holder): Promise<MethodRow | undefined> =>
  methodsOf(tx, holder)
    .where('state', '=', 'saved')
    .orderBy('is_default', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()

/** Makes a method its user's default, now or once it is saved. Under the customer's lock. */
export async function makeDefault(tx: Tx, { id, user_id, processor, state }: MethodRow): Promise<void> {
  const methods = tx.q.updateTable('payment_methods')
  if (state === 'saved')
    await methods
      .set({ is_default: 0 })
      .where('user_id', '=', user_id)
      .where('processor', '=', processor)
      .where('state', '=', 'saved')
      .execute()
  await methods.set({ is_default: 1 }).where('id', '=', id).execute()
}

/** Makes the newest saved method of a user the default if there is none. Under the lock of a customer of the user. */
export async function keepDefault(tx: Tx, holder: Holder): Promise<void> {
  const first = await firstMethod(tx, holder)
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
  else await keepDefault(tx, row)
}
