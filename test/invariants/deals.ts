import { Order } from '../../protocol/contract/consumer-orders.ts'
import { OrderStatus, orderStatusName } from '../../protocol/model/order-status.ts'
import type { Evidence, Violation } from './evidence.ts'

const S = OrderStatus
const Deals = Order.shape.deals
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/**
 * I6, deals: the savings of a frozen order are exactly the reductions of its lines and its redemptions. A
 * redemption is completed with the payment, and bound only by a live order. No limit is exceeded.
 */
export function dealsAddUp({ cloud }: Evidence): Violation[] {
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I6', text })

  for (const order of cloud.orders) {
    const redemptions = cloud.redemptions.filter(({ order_id }) => order_id === order.id)
    const binding = redemptions.filter(({ status }) => status !== 'released')
    const name = `order ${order.id} (${orderStatusName(order.processing_status)})`
    if (order.total === null) {
      if (binding.length > 0) say(`${name} is no more than a cart, and has ${binding.length} redemptions`)
      continue
    }
    const deals = order.deals === null ? [] : Deals.parse(JSON.parse(order.deals))
    const items = cloud.items.filter(({ order_id }) => order_id === order.id)
    const savings = sum(deals.map((deal) => deal.savings))
    const off = sum(items.map(({ unit_price, qty, net }) => unit_price! * qty - net!))
    if (off !== savings) say(`${name}: deals saved ${savings}, and ${off} is off its lines`)
    const net = sum(items.map((item) => item.net!))
    const total = sum(items.map((item) => item.net! + item.tax!))
    if (net !== order.total_price_discounted || total !== order.total)
      say(
        `${name}: its lines add up to ${net} and ${total}, itself to ${order.total_price_discounted} and ${order.total}`,
      )

    const last = redemptions.filter(
      ({ status }) => status === (binding.length > 0 ? 'completed' : 'released'),
    )
    for (const { deal_id, savings: saved } of deals)
      if (!last.some((one) => one.deal_id === deal_id && one.discount_amount === saved))
        say(`${name} has saved ${saved} by deal ${deal_id}, of which no redemption tells`)
    if (binding.length !== 0 && binding.length !== deals.length)
      say(`${name} has ${deals.length} deals and ${binding.length} redemptions`)
    const mustRelease = order.processing_status === S.CANCELLED
    const mayRelease = mustRelease || [S.TIMED_OUT, S.FAILED].some((one) => one === order.processing_status)
    if (mustRelease && binding.length > 0) say(`${name} has redemptions that bind`)
    if (!mayRelease && binding.length < deals.length) say(`${name} has lost redemptions`)
  }

  for (const { deal_id, type, value } of cloud.dealConstraints) {
    const used = cloud.redemptions.filter(
      (one) =>
        one.deal_id === deal_id &&
        (one.status === 'completed' || one.order_id !== null) &&
        one.status !== 'released',
    )
    const limit = Number(value)
    if (type === 'MAXUSES' && used.length > limit)
      say(`deal ${deal_id} is used ${used.length} times of ${limit}`)
    if (type !== 'MAXUSES_USER') continue
    for (const user of new Set(used.map(({ user_id }) => user_id))) {
      const uses = used.filter(({ user_id }) => user_id === user).length
      if (uses > limit) say(`deal ${deal_id} is used ${uses} times of ${limit} by user ${user}`)
    }
  }
  return violations
}
