import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { Cents, CreatedAt, Currency, OrderId, Timestamp, Upc } from './fields.ts'
import { HubSummary } from './owner-hubs.ts'

const PaidBy = namedEnum('ReceiptPaymentType', 'Way in which an order was paid.', {
  card: 'by card.',
  platform_a: 'by the mobile wallet of platform A.',
  platform_b: 'by the mobile wallet of platform B.',
  wallet: 'from the wallet of the service.',
  external: 'to an integrator.',
})
const RefundStatus = namedEnum('ReceiptRefundStatus', 'State of a refund.', {
  pending: 'the refund is under way.',
  succeeded: 'the money was refunded.',
  failed: 'the refund failed.',
})

/** Contract, section 16. */
export const Receipt = z
  .object({
    receipt_number: z.string().describe('Number of the hub, a hyphen, and the number of the order.'),
    order_id: OrderId,
    seller: z.string().describe('Name of the seller.'),
    hub: HubSummary,
    issued_at: Timestamp.describe('Time of the payment (UTC).'),
    paid_at: Timestamp.describe('Time of the payment (UTC).'),
    currency: Currency,
    items: z
      .array(
        z
          .object({
            name: z.string().describe('Name of the product.'),
            productUPC: Upc,
            qty: z.int().describe('Bought units.'),
            refunded_quantity: z.int().describe('Refunded units.'),
            unit_price_original: Cents.describe(
              'Price of one unit before the product’s own markdown, in cents.',
            ),
            price: Cents.describe('Price of one unit after the product’s own markdown, in cents.'),
            line_total: Cents.describe('Total of the line after deals and without tax, in cents.'),
          })
          .meta({ id: 'ReceiptItem', description: 'A line of a receipt.' }),
      )
      .describe('Lines of the receipt.'),
    total_price_original: Cents.describe(
      'Sum of the lines before markdowns and deals, without tax, in cents.',
    ),
    discount_total: Cents.describe('Markdowns and deals together, in cents.'),
    tax_rate: z.number().describe('Tax rate in percent.'),
    tax_total: Cents.describe('Tax in cents.'),
    total: Cents.describe('Paid amount with tax, in cents.'),
    payments: z
      .array(
        z
          .object({
            payment_id: z.string().describe('Id of the payment.'),
            type: PaidBy,
            brand: z.string().nullable().describe('Brand of the card; null if it is not known.'),
            last4: z
              .string()
              .nullable()
              .describe('Last four digits of the card; null if they are not known.'),
            amount: Cents.describe('Paid amount with tax, in cents.'),
            paid_at: Timestamp.describe('Time of the payment (UTC).'),
          })
          .meta({ id: 'ReceiptPayment', description: 'A payment of a receipt.' }),
      )
      .describe('Payments of the order; empty for a free order.'),
    refunds: z
      .array(
        z
          .object({
            amount: Cents.describe('Refunded amount with tax, in cents.'),
            status: RefundStatus,
            created_at: CreatedAt,
          })
          .meta({ id: 'ReceiptRefund', description: 'A refund of a receipt.' }),
      )
      .describe('Refunds of the order, oldest first.'),
    refunded_total: Cents.describe('Sum of the succeeded refunds with tax, in cents.'),
  })
  .meta({ id: 'Receipt', description: 'Receipt of a paid order.' })
export type Receipt = z.infer<typeof Receipt>
