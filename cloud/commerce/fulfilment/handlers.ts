import type { Handlers } from '../../platform/http/handler.ts'
import type { CommerceServices } from '../services.ts'
import { deleteOrder } from './delete-order.ts'

/** C §4.2: a customer takes an order back. */
export const cancellationHandlers = (services: CommerceServices): Handlers<'consumer.orders.delete'> => ({
  async 'consumer.orders.delete'({ params, credential }) {
    const outcome = await deleteOrder(
      services,
      { userId: params.user_id, orderId: params.order_id },
      credential.actor,
    )
    const message =
      outcome === 'deleted' ? 'The order was deleted.' : 'The order was cancelled and is refunded.'
    return { success: true, order_id: params.order_id, message }
  },
})
