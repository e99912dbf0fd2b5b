import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import type { CloudEvidence, Evidence, Violation } from './evidence.ts'

type Order = CloudEvidence['orders'][number]

/** Order in which the events of a paid order come, if they come. */
const STATIONS = ['order.paid', 'order.ready', 'order.collecting']

const lastOf: Partial<Record<S, string>> = {
  [S.QUEUED]: 'order.paid',
  [S.PREPARING]: 'order.paid',
  [S.READY]: 'order.ready',
  [S.COLLECTING]: 'order.collecting',
  [S.COMPLETED]: 'order.completed',
  [S.CANCELLED]: 'order.cancelled',
  [S.TIMED_OUT]: 'order.timed_out',
  [S.FAILED]: 'order.failed',
}

/** I13: integrators receive each status change of a paid order once, in order, and each refund once. */
export function changesArePublishedOnce({ cloud }: Evidence): Violation[] {
  return cloud.orders.flatMap((order) => {
    const all = cloud.events.filter(({ order_id }) => order_id === order.id).map(({ type }) => type)
    const moves = all.filter((type) => type !== 'order.refunded' && type !== 'payment.disputed')
    const refunds = cloud.refunds.filter(({ order_id }) => order_id === order.id)
    const told = all.filter((type) => type === 'order.refunded').length
    // A refund that the bank returned later was published when it had succeeded.
    const areRefundsPublished =
      told >= refunds.filter(({ status }) => status === 'succeeded').length && told <= refunds.length
    if (isPublishedInOrder(order, moves) && areRefundsPublished) return []
    const text = `order ${order.id} at ${order.processing_status}, refunds ${refunds.map(({ status }) => status).join(' ')}: told ${all.join(' ')}`
    return [{ invariant: 'I13' as const, text }]
  })
}

function isPublishedInOrder(order: Order, moves: readonly string[]): boolean {
  if (order.queued_at === null) return moves.length === 0
  const ranks = moves.map((type) => (STATIONS.includes(type) ? STATIONS.indexOf(type) : STATIONS.length))
  const isInOrder = ranks.every((rank, index) => index === 0 || rank > ranks[index - 1]!)
  const wasReady = order.processing_status !== S.COMPLETED || moves.includes('order.ready')
  return (
    moves[0] === 'order.paid' && isInOrder && wasReady && moves.at(-1) === lastOf[order.processing_status]
  )
}
