import { sql } from 'kysely'
import { replaceRefused } from '../refunds/automatic-refunds.ts'
import { EXTERNAL } from '../processors/payment-methods.ts'
import type { PaymentRow, RefundRow } from '../orders/payment-status.ts'
import { turn } from '../processors/reach.ts'
import { cancelPayment, submitPayment } from './settle-payment.ts'
import { executeRefund } from '../refunds/execute-refund.ts'
import type { MoneyServices } from '../services.ts'

const BATCH = 100
/** As the index of such payments has it: in these words only it is used. */
const isUnderWay = sql<boolean>`status in ('pending', 'requires_action', 'authorized')`

/**
 * Brings every payment that was left unfinished to its end: one whose outcome was never learned (a crash, a processor out
 * of reach) is asked about again, one whose customer has gone is cancelled.
 */
export async function recoverPayments(services: MoneyServices): Promise<void> {
  const { db, runtime, settings } = services.context
  const now = runtime.clock.now()
  for (const payment of await unfinished(services, 'pending', now - settings.paymentRecheckMs))
    await turn(services, `payment ${payment.id}`, () => submitPayment(services, payment))
  for (const payment of await unfinished(services, 'requires_action', now - settings.paymentAbandonMs))
    if (payment.processor !== EXTERNAL || (await isIdle(db, payment, now - settings.idleOrderMs)))
      await turn(services, `payment ${payment.id}`, () => cancelPayment(services, payment))
}

/**
 * Carries out the refunds that wait for the processor, those due longest first, and sends again what it refused and the
 * service owes.
 */
export async function carryOutRefunds(services: MoneyServices): Promise<void> {
  const { db, runtime, settings } = services.context
  const now = runtime.clock.now()
  const due = await db.kysely
    .selectFrom('refunds')
    .selectAll()
    .where('due_at', 'is not', null)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(BATCH)
    .execute()
  for (const refund of due)
    await turn(services, `refund ${refund.id}`, async () => {
      if (refund.status === 'failed') await db.transact((tx) => replaceRefused(tx, services.context, refund))
      else if (await claimRefund(db, refund, now + settings.paymentRecheckMs))
        await executeRefund(services, refund.id)
    })
}

/** Of several processes one asks: the others find the refund due later. */
async function claimRefund(
  { kysely }: MoneyServices['context']['db'],
  { id, due_at }: RefundRow,
  until: number,
): Promise<boolean> {
  const claimed = await kysely
    .updateTable('refunds')
    .set({ due_at: until })
    .where('id', '=', id)
    .where('status', '=', 'pending')
    .where('due_at', '=', due_at)
    .executeTakeFirst()
  return claimed.numUpdatedRows === 1n
}

function unfinished(
  { context, processor }: MoneyServices,
  status: 'pending' | 'requires_action',
  before: number,
): Promise<PaymentRow[]> {
  return context.db.kysely
    .selectFrom('payments')
    .selectAll()
    .where(isUnderWay)
    .where('status', '=', status)
    .where('processor', 'in', [processor.name, EXTERNAL])
    .where('updated_at', '<=', before)
    .orderBy('updated_at')
    .limit(BATCH)
    .execute()
}

/** An integrator's claim lasts as long as a cart that nobody touches. */
async function isIdle(
  { kysely }: MoneyServices['context']['db'],
  payment: PaymentRow,
  before: number,
): Promise<boolean> {
  const order = await kysely
    .selectFrom('orders')
    .select('updated_at')
    .where('id', '=', payment.order_id)
    .executeTakeFirstOrThrow()
  return order.updated_at <= before
}
