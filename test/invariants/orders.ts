import { unitOfRef } from '../../edge/core/operations/intend.ts'
import { OrderStatus, orderStatusName } from '../../protocol/model/order-status.ts'
import { operationOf, unitsFallen } from './motion.ts'
import type { Evidence, Violation } from './evidence.ts'

const S = OrderStatus
const ended = new Set<number>([S.COMPLETED, S.CANCELLED, S.TIMED_OUT, S.FAILED, S.EXPIRED, S.NEW])

/**
 * I3: nothing paid is lost, nothing is paid twice. Every order has ended, paid units without a sensed drop
 * are refunded, and units credited as dropped did drop.
 */
export function nothingPaidIsLost(evidence: Evidence): Violation[] {
  const { cloud, world, lost = new Set() } = evidence
  const violations: Violation[] = []
  const say = (text: string) => violations.push({ invariant: 'I3', text })

  const fallenFor = new Map<string, number>()
  for (const motion of world.motions) {
    const unit = unitOfRef(world.refOfOperation.get(operationOf(motion) ?? '') ?? '')
    if (unit === undefined || unitsFallen(motion) === 0) continue
    const line = `${unit.order_id}.${unit.line_id}`
    fallenFor.set(line, (fallenFor.get(line) ?? 0) + 1)
  }

  for (const order of cloud.orders) {
    const name = orderStatusName(order.processing_status)
    if (!ended.has(order.processing_status)) say(`order ${order.id} never ended: ${name}`)
    const items = cloud.items.filter((item) => item.order_id === order.id)
    const completed = cloud.payments.filter(
      (payment) => payment.order_id === order.id && payment.status === 'completed',
    )
    const timely = completed.filter((payment) => payment.is_late === 0)
    const paid = completed.reduce((sum, payment) => sum + payment.amount, 0)
    const refunded = cloud.refunds
      .filter((refund) => refund.order_id === order.id && refund.status === 'succeeded')
      .reduce((sum, refund) => sum + refund.amount, 0)
    const unresolved = cloud.refunds.filter(
      (refund) => refund.order_id === order.id && refund.status === 'pending',
    )
    if (unresolved.length > 0) say(`order ${order.id} has ${unresolved.length} refunds pending`)
    const refused = cloud.refunds.some((refund) => refund.order_id === order.id && refund.status === 'failed')
    if (timely.length > 1) say(`order ${order.id} was paid ${timely.length} times`)
    if (refunded > paid) say(`order ${order.id}: ${refunded} went back of ${paid} paid`)

    let owed = completed
      .filter((payment) => payment.is_late === 1)
      .reduce((sum, payment) => sum + payment.amount, 0)
    for (const item of items) {
      const fallen = fallenFor.get(`${order.uuid}.${item.id}`) ?? 0
      if (item.qty_dropped > item.qty)
        say(`order ${order.id}: ${item.qty_dropped} of ${item.qty} units delivered`)
      if (item.qty_dropped > fallen)
        say(`order ${order.id}: ${item.qty_dropped} units reported dropped, ${fallen} fell`)
      if (timely.length === 0) {
        // Only the books know an integrator's payment, and an unreachable processor may report a payment too
        // late. If the books are an older copy, the order was paid all the same.
        if (fallen > 0 && !lost.has(`paid ${order.uuid}`))
          say(`order ${order.id} (${name}) is unpaid, and ${fallen} units fell for it`)
        continue
      }
      owed += shareOf(item.qty - item.qty_dropped, item)
    }
    // Rounding by share never returns more than was paid, and at most a cent less than each unit cost.
    if (
      !refused &&
      timely.length > 0 &&
      order.processing_status !== S.COMPLETED &&
      refunded < owed &&
      !isUnclaimed(order)
    )
      say(`order ${order.id} (${name}): ${owed} cents were not delivered, ${refunded} went back`)
    if (!refused && order.processing_status === S.COMPLETED && refunded < owed)
      say(`order ${order.id} (COMPLETED): ${owed} cents were not delivered, ${refunded} went back`)
  }
  return violations
}

const isUnclaimed = (order: Evidence['cloud']['orders'][number]): boolean =>
  order.failure_reason === 'unclaimed'

/** The smallest allowed refund of `units` of a line: its frozen share, rounded down. */
function shareOf(units: number, item: Evidence['cloud']['items'][number]): number {
  return Math.floor((((item.net ?? 0) + (item.tax ?? 0)) * units) / item.qty)
}
