import { z } from 'zod'
import { Cents, Id } from './fields.ts'
import { ClientSecret, PaymentMethod, PaymentResult } from './order-objects.ts'
import { defineRoutes } from './route.ts'

const common = { interface: 'consumer', auth: { kind: 'user' }, tag: 'Payments' } as const
const posted = { ...common, method: 'POST', idempotent: true } as const

/** A method's id at the processor. */
const MethodId = z.string().min(1).max(255)

const ofPaying = [
  'order_not_found',
  'order_already_paid',
  'order_not_editable',
  'order_state_conflict',
  'total_changed',
  'insufficient_stock',
  'hub_not_accepting_orders',
  'no_bin_available',
  'payment_method_not_found',
  'card_declined',
  'payment_failed',
  'processor_unavailable',
] as const

const visa = {
  payment_method_id: 'pm_card_visa',
  type: 'card',
  brand: 'visa',
  last4: '4242',
  exp_month: 12,
  exp_year: 2034,
  is_default: true,
  created_at: '2026-01-31T12:00:00.000Z',
} as const

const paid = {
  order_id: 1,
  payment_id: 'pi_1',
  status: 'succeeded',
  payment_status: 'completed',
  processing_status: 20,
  amount: 541,
  client_secret: null,
  next_action: null,
  decline_code: null,
} as const

/** The same for both mobile wallets. */
const walletPay = (platform: 'A' | 'B') =>
  ({
    ...posted,
    rate: 'payment',
    body: z.object({
      order_id: Id,
      /** What the wallet gave the processor's library in the app: its token (`tok_…`) or payment method (`pm_…`). */
      wallet_token: z.string().min(1).max(5000),
      /** Cents that the customer was shown; another total is answered with `total_changed`. */
      expected_total: Cents.optional(),
    }),
    response: PaymentResult,
    errors: ofPaying,
    summary: `Pay an order with a mobile wallet of platform ${platform}`,
    description:
      'The sandbox takes the names of its cards as `pm_card_…` and as `tok_…` (`tok_visa` pays, `tok_chargeDeclined` is declined, `tok_authenticationRequired` wants its holder; others of the kind are not found), and any other text for the token of a wallet that pays.',
    examples: { body: { order_id: 1, wallet_token: 'tok_visa' }, response: paid },
  }) as const

/** C §4.4, contract §10. */
export const consumerPaymentRoutes = defineRoutes({
  'consumer.payments.setup_intent': {
    ...posted,
    path: '/users/payments/setup-intent',
    rate: 'standard',
    response: ClientSecret,
    errors: ['processor_unavailable'],
    summary: "Begin to save a payment method in the processor's own form",
    description:
      'The form, opened with the client secret, yields the id of a payment method, which save-payment-method then saves.',
    examples: {
      response: {
        setup_intent_id: 'seti_1',
        client_secret: 'seti_1_secret',
        status: 'requires_payment_method',
      },
    },
  },
  'consumer.payments.save_method': {
    ...posted,
    path: '/users/payments/save-payment-method',
    rate: 'standard',
    body: z.object({ payment_method_id: MethodId, set_default: z.boolean().optional() }),
    response: PaymentMethod,
    errors: ['payment_method_not_found', 'card_declined', 'processor_unavailable'],
    summary: 'Save a payment method',
    description:
      'The first one that is saved is the default. One that is saved already is answered as it is. 50 can be saved.',
    examples: { body: { payment_method_id: 'pm_card_visa', set_default: true }, response: visa },
  },
  'consumer.payments.methods': {
    ...common,
    method: 'GET',
    path: '/users/payments/methods',
    rate: 'standard',
    response: z.array(PaymentMethod),
    summary: 'Saved payment methods, the default first, then the newest',
    examples: { response: [visa] },
  },
  'consumer.payments.delete_method': {
    ...common,
    method: 'DELETE',
    path: '/users/payments/methods/{payment_method_id}',
    rate: 'standard',
    params: z.object({ payment_method_id: MethodId }),
    response: z.object({ payment_method_id: z.string(), deleted: z.literal(true) }),
    errors: ['payment_method_not_found'],
    summary: 'Remove a saved payment method',
    description: 'Where it was the default, the newest of those that are left is.',
    examples: { response: { payment_method_id: 'pm_card_visa', deleted: true } },
  },
  'consumer.payments.pay': {
    ...posted,
    path: '/users/payments/pay',
    rate: 'payment',
    body: z.object({
      order_id: Id,
      /** A saved one, or any of the processor's; `external` claims the order for an integrator's payment (contract §5). */
      payment_method_id: MethodId,
      /** The method is saved once it has paid. */
      save_payment_method: z.boolean().optional(),
      /** Cents that the customer was shown; another total is answered with `total_changed`. */
      expected_total: Cents.optional(),
    }),
    response: PaymentResult,
    errors: ofPaying,
    summary: 'Pay an order by card; the amount is the server’s',
    examples: { body: { order_id: 1, payment_method_id: 'pm_card_visa' }, response: paid },
  },
  'consumer.payments.platform_a_pay': { ...walletPay('A'), path: '/users/payments/platform-a-pay' },
  'consumer.payments.platform_b_pay': { ...walletPay('B'), path: '/users/payments/platform-b-pay' },
  'consumer.payments.confirm': {
    ...posted,
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
