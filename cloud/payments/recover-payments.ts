import { sql } from 'kysely'
import { isolated } from '../background.ts'
import type { PaymentRow } from './payment-status.ts'
import { ProcessorUnavailable } from './processor.ts'
import { cancelPayment, submitPayment } from './settle-payment.ts'
import { executeRefund } from './execute-refund.ts'
import type { MoneyServices } from './services.ts'

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
    if (payment.processor !== 'external' || (await isIdle(db, payment, now - settings.idleOrderMs)))
      await turn(services, `payment ${payment.id}`, () => cancelPayment(services, payment))
}

/** Carries out every refund that waits for the processor. */
export async function carryOutRefunds(services: MoneyServices): Promise<void> {
  const pending = await services.context.db.kysely
    .selectFrom('refunds')
    .select('id')
    .where('status', '=', sql.lit('pending'))
    .orderBy('id')
    .limit(BATCH)
    .execute()
  for (const { id } of pending) await turn(services, `refund ${id}`, () => executeRefund(services, id))
}

function unfinished(
  { context }: MoneyServices,
  status: 'pending' | 'requires_action',
  before: number,
): Promise<PaymentRow[]> {
  return context.db.kysely
    .selectFrom('payments')
    .selectAll()
    .where(isUnderWay)
    .where('status', '=', status)
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

/** One payment that cannot be brought to its end does not keep the others from theirs. */
function turn({ context }: MoneyServices, during: string, work: () => Promise<unknown>): Promise<void> {
  return isolated(context, during, async () => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof ProcessorUnavailable)) throw error
      context.log.warn({ err: error, during }, 'the card processor cannot be reached')
    }
  })
}
