import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { reachesHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { CommerceServices } from '../services.ts'
import { refundItem } from './refund-item.ts'
import { refundOrder } from './refund-order.ts'

/** O §4.3: what an owner gives back. */
export function refundHandlers(
  services: CommerceServices,
): Handlers<'owner.orders.refund' | 'owner.orders.refund_item'> {
  const { db } = services.context
  /** `asked`: a key whose first answer was a 5xx may come again with something else to do. */
  const requestOf = (
    orderId: number,
    credential: OwnerCredential,
    key: string | undefined,
    asked: readonly (number | null)[],
  ) => ({
    orderId,
    mayTouch: async (hubId: number) => {
      const hub = await db.kysely
        .selectFrom('hubs')
        .select(['id', 'owner_id'])
        .where('id', '=', hubId)
        .executeTakeFirstOrThrow()
      return reachesHub(credential, hub)
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
