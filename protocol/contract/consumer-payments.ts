import { z } from 'zod'
import { Cents, Id } from './fields.ts'
import { PaymentResult } from './order-objects.ts'
import { defineRoutes } from './route.ts'

const common = { interface: 'consumer', auth: { kind: 'user' }, tag: 'Payments', idempotent: true } as const

/** C §4.4, contract §10. */
export const consumerPaymentRoutes = defineRoutes({
  'consumer.payments.pay': {
    ...common,
    method: 'POST',
    path: '/users/payments/pay',
    rate: 'payment',
    body: z.object({
      order_id: Id,
      /** `external` claims the order for an integrator's payment (contract §5). */
      payment_method_id: z.string().min(1).max(255),
      save_payment_method: z.boolean().optional(),
      /** Cents that the customer was shown; another total is answered with `total_changed`. */
      expected_total: Cents.optional(),
    }),
    response: PaymentResult,
    errors: [
      'order_not_found',
      'order_already_paid',
      'order_not_editable',
      'total_changed',
      'insufficient_stock',
      'hub_not_accepting_orders',
      'no_bin_available',
      'payment_method_not_found',
      'card_declined',
      'payment_failed',
      'processor_unavailable',
    ],
    summary: 'Pay an order by card; the amount is the server’s',
    examples: { body: { order_id: 1, payment_method_id: 'pm_card_visa' } },
  },
  'consumer.payments.confirm': {
    ...common,
    method: 'POST',
    path: '/users/payments/confirm-payment',
    rate: 'standard',
    body: z.object({
      order_id: Id,
      /** `payment_id` of the payment's result. */
      payment_intent_id: z.string().min(1).max(255),
    }),
    response: PaymentResult,
    errors: [
      'order_not_found',
      'not_found',
      'order_state_conflict',
      'card_declined',
      'payment_failed',
      'processor_unavailable',
    ],
    summary: 'Complete a payment that required an action of the customer',
    examples: { body: { order_id: 1, payment_intent_id: 'pi_1' } },
  },
})
