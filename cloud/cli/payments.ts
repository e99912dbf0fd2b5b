import { deposits, lockDeposit, stuckDeposits } from '../commerce/ledger/deposit.ts'
import { findPayment, payments, stuckPayments } from '../commerce/payments/payment.ts'
import { stuckRefunds } from '../commerce/refunds/execute-refund.ts'
import { openOrphans, orphans, SETTLED } from '../commerce/payments/orphaned-payments.ts'
import type { CloudContext } from '../platform/context.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { COMMAND_LINE, recordAct, type CommandLine } from './command-line.ts'
import { numberOf } from './options.ts'

const usage = `Usage:
  larder payments stuck
  larder payments orphaned
  larder payments settle ID|REF

stuck lists payments, deposits of wallets, and refunds, with an outcome that the processor has not reported in time. No order
waits for them, and the service asks the processor again. If the processor is no longer configured, look the payment up there, and
cancel or refund it. Then call settle ID: the service stops asking. A refund (refund-ID) is listed after two weeks: its customer
waits for the money. settle does not end a refund. Cancel it at the processor, or wait for its result.

orphaned lists payments that the card processor has and this database lacks, for example after a restore. Refund each at the
processor (or set ORPHANED_PAYMENTS=refund); the service then closes it. If the customer has the goods, no refund is due:
settle REF closes the payment. REF is the processor's id (pi_…). Prints JSON.`

const SETTLES_NO_REFUND =
  'a stuck refund ends with its result at the processor: cancel it there, or wait. larder orders settle-refunds records a refund at a processor that is no longer configured'

/** Stuck and orphaned payments, for operators. */
export const paymentCommands: CommandLine = {
  usage,
  subcommands: {
    stuck: { options: [], run: ({ q }) => listStuck(q) },
    orphaned: { options: [], run: ({ q }) => orphanedPayments(q) },
    settle: {
      options: [],
      positionals: ['id'],
      async run({ db, options, context, runtime }) {
        const given = options['id'] ?? ''
        if (/^deposit-\d+$/.test(given)) return db.transact((tx) => settleDeposit(tx, context, given))
        if (/^refund-\d+$/.test(given)) throw new Error(SETTLES_NO_REFUND)
        if (!/^\d+$/.test(given)) return db.transact((tx) => settleOrphan(tx, context, given))
        const id = numberOf(options, 'id', 1, Number.MAX_SAFE_INTEGER)!
        return db.transact(async (tx) => {
          const row = await stuckPayments(tx.q).where('p.id', '=', id).executeTakeFirst()
          if (!row) throw new Error(`no such payment is stuck: ${options['id'] ?? ''}`)
          const stuck = viewStuck(row)
          const payment = (await findPayment(tx.q, id))!
          await payments.apply(
            tx,
            context,
            payment,
            { kind: 'payment', subject: id },
            { outcome: 'canceled' },
          )
          const { order_id: orderId, ...detail } = stuck
          await recordAct(tx.q, runtime, { action: 'payments.settle', object: `order-${orderId}`, detail })
          return { ...stuck, settled: true }
        })
      },
    },
  },
}

async function settleOrphan(tx: Tx, context: CloudContext, ref: string) {
  const orphan = await openOrphans(tx.q).where('o.processor_ref', '=', ref).executeTakeFirst()
  if (!orphan) throw new Error(`no such payment is orphaned: ${ref}`)
  await orphans.apply(
    tx,
    context,
    orphan,
    { kind: 'orphan', subject: orphan.id },
    { outcome: 'canceled', reason: SETTLED, extra: { result: 'settled', actor: COMMAND_LINE } },
  )
  return { ...viewOrphan(orphan), settled: true }
}

async function settleDeposit(tx: Tx, context: CloudContext, given: string) {
  const subject = Number(given.slice('deposit-'.length))
  const row = await stuckDeposits(tx.q).where('e.id', '=', subject).executeTakeFirst()
  const deposit = row && (await lockDeposit(tx, subject))
  if (!deposit) throw new Error(`no such deposit is stuck: ${given}`)
  const stuck = viewDeposit(row)
  await deposits.apply(tx, context, deposit, { kind: 'deposit', subject }, { outcome: 'canceled' })
  const { id: object, ...detail } = stuck
  await recordAct(tx.q, context.runtime, { action: 'payments.settle', object, detail })
  return { ...stuck, settled: true }
}

const orphanedPayments = async (q: Queries) => (await openOrphans(q).execute()).map(viewOrphan)

type OpenOrphan = Awaited<ReturnType<ReturnType<typeof openOrphans>['execute']>>[number]

const viewOrphan = (orphan: OpenOrphan) => {
  const { processor_ref: ref, processor, kind, amount, order_id, order_uuid, hub_id } = orphan
  const times = { paid_at: timestamp(orphan.paid_at), found_at: timestamp(orphan.started_at) }
  return { ref, processor, kind, amount, order_id, order_uuid, hub_id, ...times }
}

const listStuck = async (q: Queries) => [
  ...(await stuckPayments(q).execute()).map(viewStuck),
  ...(await stuckDeposits(q).execute()).map(viewDeposit),
  ...(await stuckRefunds(q).execute()).map(({ id, ...refund }) =>
    viewStuck({ id: `refund-${id}`, ...refund }),
  ),
]

type StuckDeposit = Awaited<ReturnType<ReturnType<typeof stuckDeposits>['execute']>>[number]

const viewDeposit = ({ id, ...deposit }: StuckDeposit) => viewStuck({ id: `deposit-${id}`, ...deposit })

const viewStuck = <T extends { stuck_at: number | null }>({ stuck_at, ...stuck }: T) => ({
  ...stuck,
  stuck_at: timestampOrNull(stuck_at),
})
