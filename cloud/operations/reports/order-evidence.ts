import { counted } from '../../../protocol/model/counted.ts'
import type { OrderEvidence } from '../../../protocol/contract/owner-orders.ts'
import { amountText } from '../../../protocol/model/money.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { withImage } from '../../platform/media/addresses.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries } from '../../platform/store/database.ts'
import { readOwed } from '../../commerce/refunds/owed.ts'
import { parseBins, requireOrderOf, type ItemRow, type OrderRow } from '../../commerce/orders/order-rows.ts'
import type { RefundRow } from '../../commerce/orders/payment-status.ts'

type Entry = OrderEvidence['evidence'][number]
type Kind = Entry['kind']

/** An order with its lines, its money and its motions with an unknown outcome. */
interface Facts {
  order: OrderRow
  items: readonly ItemRow[]
  payments: readonly { processor: string; amount: number; updated_at: number }[]
  refunds: readonly RefundRow[]
  /** Refunds that failed and are still owed. */
  failed: readonly RefundRow[]
  unknown: readonly {
    reason: string
    at: number
    settled_at: number | null
    settled_by: string | null
    happened: number | null
  }[]
}

export const evidenceHandlers = (
  { db }: CloudContext,
  { addressOf }: Pick<Media, 'addressOf'>,
): Handlers<'owner.orders.get'> => ({
  async 'owner.orders.get'({ params, credential }) {
    const order = await requireOrderOf(db.kysely, credential, params.order_id)
    const { order_items, ...evidence } = evidenceOf(await readFacts(db.kysely, order))
    return { ...evidence, order_items: order_items.map((item) => withImage(addressOf, item)) }
  },
})

async function readFacts(q: Queries, order: OrderRow): Promise<Facts> {
  const [items, payments, { refunds, owed: failed }, unknown] = await Promise.all([
    // The lines of a cart are private to its customer.
    order.owner_id === null
      ? []
      : q.selectFrom('order_items').selectAll().where('order_id', '=', order.id).orderBy('id').execute(),
    q
      .selectFrom('payments')
      .select(['processor', 'amount', 'updated_at'])
      .where('order_id', '=', order.id)
      .where('status', '=', 'completed')
      .execute(),
    readOwed(q, order),
    q
      .selectFrom('unknown_operations')
      .select(['reason', 'at', 'settled_at', 'settled_by', 'happened'])
      .where('hub_id', '=', order.hub_id)
      .where('order_id', '=', order.id)
      .execute(),
  ])
  return { order, items, payments, refunds, failed, unknown }
}

function evidenceOf(facts: Facts): OrderEvidence {
  const { order, items, payments, refunds, failed } = facts
  const paid = sum(payments.map(({ amount }) => amount))
  const refunded = sum(refunds.flatMap(({ status, amount }) => (status === 'succeeded' ? amount : [])))
  const missing = sum(
    items.map(({ qty, qty_dropped: fell, refunded_quantity: back }) => Math.max(0, qty - fell - back)),
  )
  // A unit's share of its line, tax included. Refunds split odd cents, so without a missing unit nothing is owed.
  const dispensed = sum(items.map(({ net, tax, qty, qty_dropped }) => ((net! + tax!) * qty_dropped) / qty))
  const owesNothing = missing === 0 && order.owner_id !== null
  const owed = owesNothing ? 0 : Math.max(0, Math.round(paid - refunded - dispensed))
  return {
    id: order.id,
    user_id: order.user_id,
    hub_id: order.hub_id,
    // Null if the order was never sold.
    total_price_original: order.total_price_original ?? 0,
    total_price_discounted: order.total_price_discounted ?? 0,
    tax_total: order.tax_total ?? 0,
    total: order.total ?? 0,
    currency: order.currency,
    payment_status: order.payment_status,
    processing_status: order.processing_status,
    created_at: timestamp(order.created_at),
    bins: parseBins(order.bins),
    order_items: items.map((item) => ({
      productUPC: item.upc!,
      name: item.name!,
      qty: item.qty,
      dropped: item.qty_dropped >= item.qty,
      qty_dropped: item.qty_dropped,
      refunded_quantity: item.refunded_quantity,
      price: item.unit_price!,
      image_url: item.image_url!,
    })),
    paid,
    refunded,
    owed,
    failed_refunds: failed.map(({ id, amount, failure_reason }) => ({
      refund_id: id,
      amount,
      failure_reason,
    })),
    summary: summaryOf(facts, { paid, refunded, owed }),
    evidence: [...moneyPaid(facts), ...unitsOf(facts), ...doorsOf(facts), ...moneyRefunded(facts)]
      .toSorted((one, other) => one.at - other.at)
      .map(({ at, ...entry }) => ({ at: timestamp(at), ...entry })),
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)
/** An amount in the currency of the order. */
const amountIn = ({ order }: Facts, amount: number): string => amountText(amount, order.currency)
const units = (count: number): string => counted(count, 'unit')

/** Units that the drop sensor saw fall. A count or a person resolved the others. */
const seenBySensor = ({ items, unknown }: Facts): number =>
  sum(items.map(({ qty_dropped }) => qty_dropped)) -
  unknown.filter(({ happened, settled_by }) => happened === 1 && settled_by !== 'sensor').length

function summaryOf(facts: Facts, money: { paid: number; refunded: number; owed: number }): string {
  const dropped = sum(facts.items.map(({ qty_dropped }) => qty_dropped))
  const seen = seenBySensor(facts)
  const bySensor =
    dropped === 0 ? [] : [seen === dropped ? 'seen by the sensor' : `${seen} seen by the sensor`]
  const door = facts.order.collected_at === null ? [] : ['door opened']
  const back = money.refunded === 0 ? [] : [`refunded ${amountIn(facts, money.refunded)}`]
  const owed = money.owed === 0 ? '0 owed' : `${amountIn(facts, money.owed)} owed`
  return [
    `paid ${amountIn(facts, money.paid)}`,
    `${dropped} dispensed`,
    ...bySensor,
    ...door,
    ...back,
    owed,
  ].join(', ')
}

type Timed = Omit<Entry, 'at'> & { at: number }
const entry = (at: number | null, kind: Kind, text: string): Timed[] =>
  at === null ? [] : [{ at, kind, text }]

const ways: Readonly<Record<string, string>> = { wallet: 'from the wallet', external: 'to the integrator' }

const moneyPaid = (facts: Facts): Timed[] =>
  facts.payments.flatMap(({ processor, amount, updated_at: at }) =>
    entry(at, 'paid', `The customer paid ${amountIn(facts, amount)} ${ways[processor] ?? 'by card'}.`),
  )

function unitsOf(facts: Facts): Timed[] {
  const { order, items, unknown } = facts
  const dropped = items.filter(({ qty_dropped }) => qty_dropped > 0)
  const list = dropped.map(({ name, qty_dropped }) => `${qty_dropped} ${name}`).join(', ')
  const bins = parseBins(order.bins)
  const into = bins.length > 0 ? ` into bin ${bins.join(' and ')}` : ''
  const end = order.ready_at ?? order.finished_at ?? order.updated_at
  const seen = seenBySensor(facts)
  return [
    ...entry(order.preparing_at, 'dispensed', 'The hub started to dispense.'),
    ...(dropped.length > 0 ? entry(end, 'dispensed', `The hub dispensed ${list}${into}.`) : []),
    ...(seen > 0 ? entry(end, 'sensor', `The sensor saw ${units(seen)} fall.`) : []),
    ...unknown.flatMap(({ reason, at, settled_at, settled_by, happened }) => [
      ...entry(at, 'sensor', `The sensor did not show whether a unit fell (${reason}).`),
      ...entry(
        settled_at,
        'sensor',
        `Resolved by a ${settled_by ?? 'person'}: ${happened === null ? 'the hub knows the outcome' : happened === 1 ? 'the unit fell' : 'no unit fell'}.`,
      ),
    ]),
  ]
}

const endings: Readonly<Record<number, string>> = {
  [OrderStatus.COMPLETED]: 'The bins were emptied, and their doors closed.',
  [OrderStatus.CANCELLED]: 'The order was cancelled before the hub started.',
  [OrderStatus.TIMED_OUT]: 'The hub did not dispense in time.',
  [OrderStatus.FAILED]: 'The order failed',
}

function doorsOf({ order }: Facts): Timed[] {
  const { processing_status: status, ready_at, collected_at, finished_at, failure_reason: reason } = order
  const why = status === OrderStatus.FAILED ? `: ${reason?.replaceAll('_', ' ') ?? 'the hardware'}.` : ''
  return [
    ...entry(ready_at, 'door', 'The goods were ready behind closed doors.'),
    ...entry(collected_at, 'door', 'The door of a bin opened for the customer.'),
    ...(endings[status] === undefined ? [] : entry(finished_at, 'door', `${endings[status]}${why}`)),
  ]
}

const reasons: Readonly<Record<string, string>> = {
  customer: 'by the owner',
  short: 'units did not fall',
  timed_out: 'the hub was too late',
  failed: 'the order failed',
  cancelled: 'the order was cancelled',
  late_payment: 'the payment came too late',
  processor: 'at the processor',
  dispute: 'by the bank of the customer',
}

const moneyRefunded = (facts: Facts): Timed[] =>
  facts.refunds
    .filter(({ amount }) => amount > 0)
    .flatMap(({ amount, reason, status, quantity, settles, created_at, completed_at }) => {
      const way = settles === null ? '' : ', paid in another way'
      const what = `${amountIn(facts, amount)}${quantity > 0 ? ` for ${units(quantity)}` : ''}, ${reasons[reason] ?? reason}${way}`
      if (status === 'succeeded') return entry(completed_at ?? created_at, 'refunded', `Refunded ${what}.`)
      const words = status === 'pending' ? 'Not refunded yet' : 'The processor refused to refund'
      return entry(created_at, 'refunded', `${words}: ${what}.`)
    })
