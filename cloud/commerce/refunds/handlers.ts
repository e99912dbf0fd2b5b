import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesBook, readOwner } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { ownersOf, type OrderRow } from '../orders/order-rows.ts'
import type { CommerceServices } from '../services.ts'
import { refundItem, refundOrder } from './refund-requests.ts'

/** O §4.3: refunds by an owner. */
export function refundHandlers(
  services: CommerceServices,
): Handlers<'owner.orders.refund' | 'owner.orders.refund_item'> {
  const { db } = services.context
  /**
   * `asked`: the parameters are part of the key, because a key that got a 5xx may be reused for a different
   * request.
   */
  const requestOf = (
    orderId: number,
    credential: OwnerCredential,
    key: string | undefined,
    asked: readonly (number | null)[],
  ) => ({
    orderId,
    async mayTouch(order: OrderRow) {
      const owners = await ownersOf(db.kysely, order)
      // A cart without money is a conflict for the hub's owner.
      const hub = owners.length === 0 ? await readOwner(db.kysely, order.hub_id) : undefined
      if (hub) owners.push(hub.owner_id)
      return reachesBook(db.kysely, credential, { hubId: order.hub_id, owners })
    },
    actor: credential.actor,
    requestKey: key === undefined ? undefined : `${credential.actor} ${JSON.stringify(asked)} ${key}`,
  })
  return {
    async 'owner.orders.refund'({ params, body, credential, idempotencyKey }) {
      const newStatus = await refundOrder(services, {
        ...requestOf(params.order_id, credential, idempotencyKey, [body.amount ?? null]),
        amount: body.amount,
      })
      return { success: true, order_id: params.order_id, new_status: newStatus }
    },
    async 'owner.orders.refund_item'({ params, body, credential, idempotencyKey }) {
      const { paymentStatus, amount, taxLeft } = await refundItem(services, {
        ...requestOf(params.order_id, credential, idempotencyKey, [params.product_id, body.quantity]),
        productId: params.product_id,
        quantity: body.quantity,
      })
      return { success: true, new_status: paymentStatus, refunded_amount: amount, updated_tax: taxLeft }
    },
  }
}
