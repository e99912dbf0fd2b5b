import type { PaymentStatus } from '../../../protocol/contract/fields.ts'
import { ApiError } from '../../platform/api-error.ts'
import { lockItems, type ItemRow, type OrderRow } from '../orders/order-rows.ts'
import type { Tx } from '../../platform/store/database.ts'
import { readPaymentStatus } from '../orders/payment-status.ts'
import { lineShareOf, paidPayment, refundable } from './refund-rows.ts'
import { nextUnits, takeShare } from './refund-shares.ts'
import { requestRefund, type RefundRequest } from './request-refund.ts'
import type { CommerceServices } from '../services.ts'

export interface RefundItemRequest extends RefundRequest {
  /** A product's id, or a UPC read as a number. */
  productId: number
  /** Units, 1 or more. */
  quantity: number
}

export interface RefundedItem {
  paymentStatus: PaymentStatus
  /** Cents, its tax included. */
  amount: number
  /** The order's tax that remains. */
  taxLeft: number
}

/**
 * Refunds units of one line by its frozen share (O §4.3), or by what is left of the order where amounts of it have gone
 * back before. Throws `product_not_in_order`, `insufficient_quantity`.
 */
export async function refundItem(
  services: CommerceServices,
  request: RefundItemRequest,
): Promise<RefundedItem> {
  const { db } = services.context
  const { productId, quantity } = request
  const refund = await requestRefund(services, request, {
    async share(tx, order, left) {
      const item = await requireItem(tx, order, productId)
      const remaining = item.qty - item.refunded_quantity
      if (quantity > remaining) throw new ApiError('insufficient_quantity', undefined, { remaining })
      const share = takeShare(left, nextUnits(await lineShareOf(tx, item), quantity))
      return { itemId: item.id, quantity, ...share }
    },
    async isSame(tx, order, _left, refund) {
      const item = await requireItem(tx, order, productId)
      return refund.item_id === item.id && refund.quantity === quantity
    },
  })
  return db.transact(async (tx) => ({
    paymentStatus: await readPaymentStatus(tx.q, request.orderId),
    amount: refund.amount,
    taxLeft: await taxLeft(tx, request.orderId),
  }))
}

const asUpc = (productId: number): string => String(productId).padStart(12, '0')

/** By a product id of the order, else by the UPC under which it was sold (contract §5). */
async function requireItem(tx: Tx, order: OrderRow, productId: number): Promise<ItemRow> {
  const items = await lockItems(tx, order.id)
  const item =
    items.find((one) => one.product_id === productId) ?? items.find(({ upc }) => upc === asUpc(productId))
  if (!item) throw new ApiError('product_not_in_order')
  return item
}

async function taxLeft(tx: Tx, orderId: number): Promise<number> {
  const order = await tx.q
    .selectFrom('orders')
    .select('tax_total')
    .where('id', '=', orderId)
    .executeTakeFirstOrThrow()
  return (await refundable(tx, order, (await paidPayment(tx, orderId))!)).tax
}
