import type { PaymentStatus } from '../../../protocol/contract/fields.ts'
import { ApiError } from '../../platform/api-error.ts'
import { readPaymentStatus } from '../orders/payment-status.ts'
import { amountShare } from './refund-shares.ts'
import { requestRefund, type RefundRequest } from './request-refund.ts'
import type { CommerceServices } from '../services.ts'

export interface RefundOrderRequest extends RefundRequest {
  /** Cents; all that remains where absent. */
  amount?: number | undefined
}

/** Refunds an order, whole or in part (O §4.3). Returns its payment status. Throws `already_refunded`, `invalid_amount`. */
export async function refundOrder(
  services: CommerceServices,
  request: RefundOrderRequest,
): Promise<PaymentStatus> {
  const { amount: wanted } = request
  await requestRefund(services, request, {
    share(_tx, _order, left) {
      if (left.amount === 0) throw new ApiError('already_refunded')
      const amount = wanted ?? left.amount
      if (amount > left.amount) throw new ApiError('invalid_amount', undefined, { remaining: left.amount })
      return Promise.resolve({ itemId: null, quantity: 0, ...amountShare(left, amount) })
    },
    isSame: (_tx, _order, left, { item_id, amount }) =>
      Promise.resolve(item_id === null && (wanted === undefined ? left.amount === 0 : wanted === amount)),
  })
  return readPaymentStatus(services.context.db.kysely, request.orderId)
}
