import { identityOf } from '../../cloud/commerce/processors/processor.ts'
import type { Evidence, Violation } from './evidence.ts'

/** I6: money adds up, and our books agree with the processor's. */
export function moneyAddsUp({ cloud, watched, lost = new Set() }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I6', text })

  for (const text of settledBadly(cloud.refunds)) say(text)
  for (const payment of cloud.payments) {
    const succeeded = cloud.refunds.filter(
      ({ payment_id, status }) => payment_id === payment.id && status === 'succeeded',
    )
    // A bank may take the money of a payment whose customer a person has paid in another way.
    const wanted = sum(succeeded.filter(({ reason }) => reason !== 'processor' && reason !== 'dispute'))
    // A person has paid the others to the customer outside of the service.
    const back = sum(succeeded.filter(({ settles }) => settles === null))
    for (const all of [wanted, back])
      if (all > (payment.status === 'completed' ? payment.amount : 0))
        say(`payment ${payment.id} (${payment.status}, ${payment.amount}) returned ${all}`)
    if (payment.processor !== 'sandbox') continue
    const intent = cloud.intents.find((row) => row.idempotency_key === `payment:${identityOf(payment)}`)
    const captured = intent?.status === 'succeeded' ? intent.amount : 0
    const booked = payment.status === 'completed' ? payment.amount : 0
    if (captured !== booked) say(`payment ${payment.id}: the processor took ${captured}, we booked ${booked}`)
    // A restored cloud may have received lost refunds again by the processor's events.
    const made = cloud.processorRefunds.filter(
      (row) => row.intent_id === intent?.id && row.status === 'succeeded',
    )
    // A cardholder's bank takes the money when a dispute opens, and returns it when the dispute is won.
    const disputed = cloud.processorDisputes.filter(
      ({ intent_id, status }) => intent_id === intent?.id && status !== 'won',
    )
    const returned = sum(made.filter((row) => !lost.has(row.idempotency_key))) + sum(disputed)
    if (back < returned || back > sum(made) + sum(disputed))
      say(`payment ${payment.id}: the processor returned ${returned}, we booked ${back}`)
  }
  const known = new Set([
    ...lost,
    ...Array.from(cloud.allPayments, (identity) => `payment:${identity}`),
    ...cloud.ledgerEntries.map((deposit) => `deposit:${identityOf(deposit)}`),
  ])
  for (const [refund, times] of refundsAtProcessor(cloud))
    if (times > 1) say(`the processor has paid refund ${refund} ${times} times`)
  for (const intent of cloud.intents)
    if (!known.has(intent.idempotency_key))
      say(`the processor has an intent ${intent.id} that we know nothing of`)
  // The real programs compare their books with the processor's only once an hour.
  if (watched) for (const text of chargedForNothing(cloud, lost)) say(text)
  return violations
}

const sum = (rows: readonly { amount: number }[]): number =>
  rows.reduce((total, row) => total + row.amount, 0)

/** A person settles a refund that failed, once, with at most its amount. */
function settledBadly(refunds: Evidence['cloud']['refunds']): string[] {
  const settled = refunds.filter(({ settles }) => settles !== null)
  const isGood = (one: (typeof refunds)[number]): boolean => {
    const failed = refunds.find(({ id }) => id === one.settles)
    const isOnly = settled.every(({ id, settles }) => id === one.id || settles !== one.settles)
    const isSame = failed?.payment_id === one.payment_id && failed.item_id === one.item_id
    return isOnly && isSame && failed?.status === 'failed' && one.amount <= failed.amount
  }
  return settled.flatMap((one) =>
    isGood(one) ? [] : [`refund ${one.id} settles ${one.settles}, which is not a failed refund`],
  )
}

/** How often the processor has paid each of our refunds. A refund of somebody else has no name of ours. */
function refundsAtProcessor(cloud: Evidence['cloud']): Map<string, number> {
  const times = new Map<string, number>()
  for (const { metadata, status } of cloud.processorRefunds) {
    const { refund_id: name } = JSON.parse(metadata) as { refund_id?: string }
    if (name !== undefined && status !== 'failed') times.set(name, (times.get(name) ?? 0) + 1)
  }
  return times
}

/**
 * After a restore every charged customer has a refund or an alarm, because the books do not know the order.
 */
function chargedForNothing(cloud: Evidence['cloud'], lost: ReadonlySet<string>): string[] {
  return cloud.intents
    .filter(({ status, idempotency_key: key }) => status === 'succeeded' && lost.has(key))
    .filter(({ id, amount }) => {
      const returned = cloud.processorRefunds
        .filter((row) => row.intent_id === id && row.status === 'succeeded')
        .reduce((sum, row) => sum + row.amount, 0)
      return returned < amount && !cloud.orphans.some(({ ref, isTold }) => ref === id && isTold)
    })
    .map(({ id, amount }) => `the books have lost payment ${id} of ${amount}, and nobody is told`)
}
