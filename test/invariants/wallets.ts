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
  balancesAreSums(cloud, say)
  transactionsMoveOnce(cloud, say)
  depositsAreTheProcessors(cloud, say)
  ordersAreInTheLedger(cloud, say)
  pointsFollowOrders(cloud, say)
  return violations
}

const sumBy = <T>(rows: readonly T[], key: (row: T) => number, amount: (row: T) => number) => {
  const sums = new Map<number, number>()
  for (const row of rows) sums.set(key(row), (sums.get(key(row)) ?? 0) + amount(row))
  return sums
}

function balancesAreSums(
  { wallets, walletEntries, walletTransactions, loyaltyAccounts, loyaltyEntries }: CloudEvidence,
  say: Say,
) {
  const cents = sumBy(
    walletEntries,
    (row) => row.user_id,
    (row) => row.amount,
  )
  const owed = sumBy(
    walletTransactions,
    (row) => row.user_id,
    (row) => row.owed,
  )
  for (const { user_id, balance, debt } of wallets) {
    if (debt !== (owed.get(user_id) ?? 0))
      say(`the wallet of user ${user_id} owes ${debt}, its transactions sum to ${owed.get(user_id)}`)
    if (debt > 0 && balance > 0) say(`the wallet of user ${user_id} holds ${balance} and owes ${debt}`)
    if (balance !== (cents.get(user_id) ?? 0))
      say(`the wallet of user ${user_id} holds ${balance}, its entries sum to ${cents.get(user_id)}`)
    if (balance < 0) say(`the wallet of user ${user_id} holds ${balance}`)
  }
  const points = sumBy(
    loyaltyEntries,
    (row) => row.user_id,
    (row) => row.points,
  )
  for (const account of loyaltyAccounts)
    if (account.points !== (points.get(account.user_id) ?? 0))
      say(
        `user ${account.user_id} has ${account.points} points, the entries sum to ${points.get(account.user_id)}`,
      )
}

/** Each completed transaction has changed its wallet once, by its amount; other transactions have not. */
function transactionsMoveOnce({ walletTransactions, walletEntries }: CloudEvidence, say: Say) {
  for (const { id, amount, status } of walletTransactions) {
    const moved = walletEntries.filter((entry) => entry.transaction_id === id)
    const expected = status === 'completed' ? 1 : 0
    if (moved.length !== expected) say(`wallet transaction ${id} (${status}) has ${moved.length} entries`)
    for (const entry of moved)
      if (entry.amount !== amount) say(`wallet transaction ${id} is ${amount}, it moved ${entry.amount}`)
  }
}

function depositsAreTheProcessors({ walletTransactions, intents }: CloudEvidence, say: Say) {
  for (const deposit of walletTransactions.filter(({ type }) => type === 'deposit')) {
    const { id, amount, status } = deposit
    if (status === 'pending') say(`deposit ${id} never ended`)
    const intent = intents.find((row) => row.idempotency_key === `deposit:${identityOf(deposit)}`)
    const captured = intent?.status === 'succeeded' ? intent.amount : 0
    const credited = status === 'completed' ? amount : 0
    if (captured !== credited) say(`deposit ${id}: the processor took ${captured}, we credited ${credited}`)
  }
}

/** Wallet payments left the wallet, and their refunds came back. */
function ordersAreInTheLedger({ payments, refunds, walletTransactions }: CloudEvidence, say: Say) {
  for (const payment of payments.filter(({ processor }) => processor === 'wallet')) {
    const debits = walletTransactions.filter(({ payment_id }) => payment_id === payment.id)
    if (debits.length !== 1 || debits[0]!.amount !== -payment.amount)
      say(
        `payment ${payment.id} of ${payment.amount} left the wallet as ${debits.map((row) => row.amount).join()}`,
      )
    const due = refunds.filter(
      ({ payment_id, amount, status }) => payment_id === payment.id && amount > 0 && status !== 'failed',
    )
    for (const refund of due) {
      const credits = walletTransactions.filter(({ refund_id }) => refund_id === refund.id)
      if (credits.length !== 1 || credits[0]!.amount !== refund.amount)
        say(`refund ${refund.id} of ${refund.amount} reached the wallet ${credits.length} times`)
    }
  }
}

/** A completed order has the points of its unrefunded part; any other order has none. */
function pointsFollowOrders({ orders, payments, refunds, loyaltyEntries }: CloudEvidence, say: Say) {
  for (const order of orders) {
    const own = loyaltyEntries.filter(({ order_id }) => order_id === order.id)
    const held = own.reduce((sum, { points }) => sum + points, 0)
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
