import type { OrderRow } from './order-rows.ts'
import type { CommerceServices } from '../services.ts'

/**
 * `cancelled`: the hub will not start it. `too_late`: the hub has started it. `offline`: the hub was not asked.
 * `unknown`: the hub may have cancelled it; its ledger will report that.
 */
export type Cancellation = 'cancelled' | 'too_late' | 'offline' | 'unknown'

/** Asks a hub to cancel an order that is QUEUED. */
export async function cancelAtHub(
  { commands }: CommerceServices,
  order: OrderRow,
  actor: string,
): Promise<Cancellation> {
  const outcome = await commands.send({
    hubId: order.hub_id,
    body: { name: 'cancel_order', order_id: order.uuid },
    object: `order-${order.id}`,
    actor,
  })
  switch (outcome.kind) {
    case 'executed':
      return 'cancelled'
    case 'refused':
      return outcome.reason === 'too_late' ? 'too_late' : 'unknown'
    case 'offline':
      return 'offline'
    case 'failed':
    case 'timeout':
      return 'unknown'
  }
}
