import { sql } from 'kysely'
import type { Queries } from '../../platform/store/database.ts'
import { allOf, statement } from '../../platform/store/statement.ts'
import type { Flag, Instant } from '../../platform/store/table.ts'
import { customerOfMethod } from '../methods/method-rows.ts'
import type { PaymentRow } from '../orders/payment-status.ts'
import { EXTERNAL, WALLET } from '../processors/processor.ts'

type Given = 'id' | 'processor' | 'method' | 'type' | 'amount' | 'status' | 'order_id' | 'user_id' | 'hub_id'

export interface NewPayment extends Pick<PaymentRow, Given> {
  now: Instant
  /** The processor that knows the method and its customer, if the method is saved. */
  savingProcessor: string
  heldSince: Instant
  /**
   * The customer who gets the method saved after it has paid; null if it is saved already or must not be
   * saved.
   */
  saver: string | null
  orderUuid: string
  /** The owner of the hub. */
  ownerId: number
}

/** The party that takes the money, and the payment's first status. */
export function startOf(
  total: number,
  from: 'processor' | typeof EXTERNAL | typeof WALLET,
  card: PaymentRow['processor'],
): Pick<NewPayment, 'processor' | 'status'> {
  if (total === 0) return { processor: 'none', status: 'completed' }
  switch (from) {
    case EXTERNAL:
      return { processor: EXTERNAL, status: 'requires_action' }
    case WALLET:
      return { processor: WALLET, status: 'completed' }
    case 'processor':
      return { processor: card, status: 'pending' }
  }
}

export async function insertPayment(q: Queries, payment: NewPayment): Promise<PaymentRow> {
  const [row] = await insertOne(q, payment)
  return row!
}

const insertOne = statement((q, one: NewPayment) => {
  const { user_id: userId, savingProcessor, method } = one
  const saved = customerOfMethod(q, { userId, processor: savingProcessor, method })
  const saver = sql<string | null>`cast(${one.saver} as text)`
  return q
    .insertInto('payments')
    .values({
      id: one.id,
      processor: one.processor,
      method,
      type: one.type,
      customer_ref: sql<string | null>`coalesce((${saved}), ${saver})`,
      saves_method: sql<Flag>`case when ${saver} is not null and (${saved}) is null then 1 else 0 end`,
      amount: one.amount,
      status: one.status,
      held_since: one.heldSince,
      order_id: one.order_id,
      order_uuid: one.orderUuid,
      hub_id: one.hub_id,
      owner_id: one.ownerId,
      user_id: userId,
      is_late: 0,
      created_at: one.now,
      updated_at: one.now,
    })
    .returning(allOf('payments'))
})
