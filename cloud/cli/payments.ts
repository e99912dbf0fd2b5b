import type { Runtime } from '../../protocol/model/runtime.ts'
import { applyPaymentOutcome } from '../commerce/payments/payment-outcome.ts'
import { timestampOrNull } from '../platform/calendar/timestamps.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { contextOf, numberOf, recordAct, type CommandLine } from './command-line.ts'

const usage = `Usage:
  npm run payments -- stuck
  npm run payments -- settle ID

Payments whose processor has not said for too long whether it took money: their orders no longer wait, and the service goes
on asking. One of a processor that is not configured any more is looked up there by hand, cancelled or given back, and then
settled here: the service asks no more. Prints JSON.`

/** Stuck payments, for operators. */
export const paymentCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    stuck: { options: [], run: ({ q }) => stuckPayments(q) },
    settle: {
      options: [],
      positionals: ['id'],
      async run({ db, options, settings }) {
        const id = numberOf(options, 'id', 1, Number.MAX_SAFE_INTEGER)
        const context = contextOf({ db, settings }, runtime)
        return db.transact(async (tx) => {
          const stuck = (await stuckPayments(tx.q)).find((payment) => payment.id === id)
          if (!stuck) throw new UsageError(`no such payment is stuck: ${options['id'] ?? ''}`)
          await applyPaymentOutcome(tx, context, stuck, { status: 'canceled' })
          const { order_id: orderId, ...detail } = stuck
          await recordAct(tx.q, runtime, { action: 'payments.settle', object: `order-${orderId}`, detail })
          return { ...stuck, settled: true }
        })
      },
    },
  },
})

async function stuckPayments(q: Queries) {
  const rows = await q
    .selectFrom('payments')
    .select(['id', 'order_id', 'processor', 'processor_ref', 'amount', 'stuck_at'])
    .where('stuck_at', 'is not', null)
    .orderBy('id')
    .execute()
  return rows.map(({ stuck_at, ...payment }) => ({ ...payment, stuck_at: timestampOrNull(stuck_at) }))
}
