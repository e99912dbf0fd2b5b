import { identityOf } from '../../cloud/commerce/processors/processor.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import type { CloudEvidence, Evidence, Violation } from './evidence.ts'

type Say = (text: string) => void

/**
 * I6: wallets and points are the sums of their ledgers, and agree with the processor's books and the orders.
 */
export function walletsAddUp({ cloud }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say: Say = (text) => violations.push({ invariant: 'I6', text })
  for (const text of ledgerFaults(cloud.ledgerAccounts, cloud.ledgerEntries)) say(text)
  depositsAreTheProcessors(cloud, say)
  ordersAreInTheLedger(cloud, say)
  pointsFollowOrders(cloud, say)
  return violations
}

/**
 * Each account is the sum of its posted entries, each entry contains the balance after it, and a wallet with a
 * debt is empty.
 */
export function ledgerFaults(
  accounts: CloudEvidence['ledgerAccounts'],
  entries: CloudEvidence['ledgerEntries'],
): string[] {
  const faults: string[] = []
  for (const { user_id, account, ...known } of accounts) {
    const own = entries.filter((entry) => entry.user_id === user_id && entry.account === account)
    const posted = own
      .filter(({ position }) => position !== null)
      .toSorted((a, b) => a.position! - b.position!)
    let [balance, debt] = [0, 0]
    for (const [index, { id, amount, owed, ...entry }] of posted.entries()) {
      balance += amount
      debt += owed
      if (entry.position !== index + 1 || entry.balance_after !== balance)
        faults.push(`ledger entry ${id}: position ${entry.position}, balance ${entry.balance_after}`)
    }
    if (known.balance !== balance || known.debt !== debt || known.entries !== posted.length || balance < 0)
      faults.push(`the ${account} of user ${user_id} is ${JSON.stringify(known)}, its entries ${balance}`)
    if (debt > 0 && balance > 0)
      faults.push(`the ${account} of user ${user_id} has ${balance} and owes ${debt}`)
  }
  for (const { id, user_id, account, status, position } of entries) {
    if ((position !== null) !== (status === 'completed')) faults.push(`ledger entry ${id} is ${status}`)
    if (position !== null && !accounts.some((one) => one.user_id === user_id && one.account === account))
      faults.push(`ledger entry ${id} has no account`)
  }
  return faults
}

function depositsAreTheProcessors({ ledgerEntries, intents }: CloudEvidence, say: Say) {
  for (const deposit of ledgerEntries.filter(({ type }) => type === 'deposit')) {
    const { id, amount, status } = deposit
    if (status === 'pending') say(`deposit ${id} never ended`)
    const intent = intents.find((row) => row.idempotency_key === `deposit:${identityOf(deposit)}`)
    const captured = intent?.status === 'succeeded' ? intent.amount : 0
    const credited = status === 'completed' ? amount : 0
    if (captured !== credited) say(`deposit ${id}: the processor took ${captured}, we credited ${credited}`)
  }
}

/** Wallet payments left the wallet, and their refunds came back. */
function ordersAreInTheLedger({ payments, refunds, ledgerEntries }: CloudEvidence, say: Say) {
  for (const payment of payments.filter(({ processor }) => processor === 'wallet')) {
    const debits = ledgerEntries.filter(({ cause }) => cause === `payment ${payment.id}`)
    if (debits.length !== 1 || debits[0]!.amount !== -payment.amount)
      say(
        `payment ${payment.id} of ${payment.amount} left the wallet as ${debits.map((row) => row.amount).join()}`,
      )
    const due = refunds.filter(
      ({ payment_id, amount, status }) => payment_id === payment.id && amount > 0 && status !== 'failed',
    )
    for (const refund of due) {
      const credits = ledgerEntries.filter(({ cause }) => cause === `refund ${refund.id}`)
      if (credits.length !== 1 || credits[0]!.amount !== refund.amount)
        say(`refund ${refund.id} of ${refund.amount} reached the wallet ${credits.length} times`)
    }
  }
}

/** A completed order has the points of its unrefunded part; any other order has none. */
function pointsFollowOrders({ orders, payments, refunds, ledgerEntries }: CloudEvidence, say: Say) {
  for (const order of orders) {
    const own = ledgerEntries.filter(({ account, order_id }) => account === 'points' && order_id === order.id)
    const held = own.reduce((sum, { amount }) => sum + amount, 0)
    const payment = payments.find(
      (row) => row.order_id === order.id && row.status === 'completed' && row.is_late === 0,
    )
    const back = refunds
      .filter((row) => row.payment_id === payment?.id && row.status === 'succeeded')
      .reduce((sum, { amount, tax }) => sum + amount - tax, 0)
    const rest = payment ? payment.amount - (order.tax_total ?? 0) - back : 0
    const rate = own[0]?.cents_per_point ?? 1
    const due = order.processing_status === OrderStatus.COMPLETED ? Math.floor(rest / rate) : 0
    if (order.processing_status === OrderStatus.COMPLETED && own.length === 0)
      say(`order ${order.id} is completed and earned nothing`)
    else if (held !== due) say(`order ${order.id} has ${held} points, ${due} are due`)
  }
}
