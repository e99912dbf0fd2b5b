import { z } from 'zod'
import { BinNumber, Cents, Id, PaymentStatus, ProcessingStatus, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `status` in the words of Stripe's PaymentIntent. */
export const PaymentIntentStatus = z
  .enum([
    'requires_payment_method',
    'requires_confirmation',
    'requires_action',
    'processing',
    'requires_capture',
    'canceled',
    'succeeded',
  ])
  .meta({ id: 'PaymentIntentStatus' })

export const PaymentResult = z
  .object({
    order_id: Id,
    /** The processor's payment intent id, or `pay_<id>` where no processor has one. `confirm-payment` takes it. */
    payment_id: z.string(),
    status: PaymentIntentStatus,
    payment_status: PaymentStatus,
    processing_status: ProcessingStatus,
    amount: Cents,
    client_secret: z.string().nullable(),
    next_action: z
      .discriminatedUnion('type', [
        z.object({ type: z.literal('integrator_confirmation'), hub_id: Id, bin_number: BinNumber }),
        /** The card's issuer wants its holder: complete it in the processor's form, then call `confirm-payment`. */
        z.object({ type: z.literal('authenticate'), payment_intent_id: z.string() }),
      ])
      .nullable(),
    decline_code: z.string().nullable(),
  })
  .meta({ id: 'PaymentResult' })
export type PaymentResult = z.infer<typeof PaymentResult>

/** What a saved way to pay is: a card, or a card in one of the two mobile wallets (C §4.4). */
export const PaymentMethodType = z
  .enum(['card', 'platform_a', 'platform_b'])
  .meta({ id: 'PaymentMethodType' })
export type PaymentMethodType = z.infer<typeof PaymentMethodType>

/** `brand` in the processor's words (`visa`, `mastercard`, …). */
export const PaymentMethod = z
  .object({
    payment_method_id: z.string(),
    type: PaymentMethodType,
    brand: z.string(),
    last4: z.string(),
    exp_month: z.int(),
    exp_year: z.int(),
    is_default: z.boolean(),
    created_at: Timestamp,
  })
  .meta({ id: 'PaymentMethod' })
export type PaymentMethod = z.infer<typeof PaymentMethod>

/** With it the processor's own form takes a card, which is then saved. `status` in the words of Stripe's SetupIntent. */
export const SetupIntentSecret = z
  .object({
    setup_intent_id: z.string(),
    client_secret: z.string(),
    status: z.enum([
      'requires_payment_method',
      'requires_confirmation',
      'requires_action',
      'processing',
      'canceled',
      'succeeded',
    ]),
  })
  .meta({ id: 'SetupIntentSecret' })
export type SetupIntentSecret = z.infer<typeof SetupIntentSecret>

/** A method's id at the processor. */
const MethodId = z.string().min(1).max(255)

/** Why an order cannot be paid, by whatever means. */
export const payingErrors = [
  'order_not_found',
  'order_already_paid',
  'order_not_editable',
  'order_state_conflict',
  'cart_empty',
  'total_changed',
  'insufficient_stock',
  'hub_not_accepting_orders',
  'no_bin_available',
  'card_declined',
  'payment_failed',
  'processor_unavailable',
] as const

const visa = {
  payment_method_id: 'pm_9f86d081884c7d659a2feaa0',
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

/** Why a card does not pay it. */
const cardErrors = [
  ...payingErrors,
  'payment_method_not_found',
  'amount_too_small',
  'invalid_quantity',
] as const

/** The same for both mobile wallets. */
const walletPay = (platform: 'A' | 'B') =>
  ({
    idempotent: true,
    rate: 'payment',
    body: z.strictObject({
      order_id: Id,
      /** What the wallet gave the processor's library in the app: its token (`tok_…`) or payment method (`pm_…`). */
      wallet_token: z.string().min(1).max(5000),
      /** Cents that the customer was shown; another total is answered with `total_changed`. */
      expected_total: Cents.min(0).optional(),
    }),
    response: PaymentResult,
    errors: cardErrors,
    summary: `Pay an order with a mobile wallet of platform ${platform}`,
    description:
      'The sandbox takes the names of its cards as `pm_card_…` and as `tok_…` (`tok_visa` pays, `tok_chargeDeclined` is declined, `tok_authenticationRequired` wants its holder; others of the kind are not found), and any other text for the token of a wallet that pays.',
    examples: { body: { order_id: 1, wallet_token: 'tok_visa' }, response: paid },
  }) as const

/** C §4.4. */
export const consumerPaymentRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Payments' },
  {
    'consumer.payments.setup_intent': {
      at: 'POST /users/payments/setup-intent',
      idempotent: true,
      response: SetupIntentSecret,
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
      at: 'POST /users/payments/save-payment-method',
      idempotent: true,
      body: z.strictObject({ payment_method_id: MethodId, set_default: z.boolean().optional() }),
      response: PaymentMethod,
      errors: ['payment_method_not_found', 'card_declined', 'processor_unavailable'],
      summary: 'Save a payment method',
      description:
        'What the processor’s form or a wallet in the app has given: a payment method (`pm_…`), or the token of a mobile wallet (`tok_…`), which becomes a method; the answer has the id that the method is saved, paid with and removed by. `type` is what the processor says of it: `platform_a` or `platform_b` for a card in a mobile wallet. The first one that is saved is the default. One that is saved already is answered as it is. 50 can be saved. The sandbox takes the names of its cards, each time for another method: `pm_card_visa` a card, `tok_visa` (or `tok_platform_a_visa`) the same in a wallet of platform A, `tok_platform_b_visa` of platform B.',
      examples: { body: { payment_method_id: 'pm_card_visa', set_default: true }, response: visa },
    },
    'consumer.payments.methods': {
      at: 'GET /users/payments/methods',
      response: z.array(PaymentMethod),
      summary: 'Saved payment methods, the default first, then the newest',
      examples: { response: [visa] },
    },
    'consumer.payments.delete_method': {
      at: 'DELETE /users/payments/methods/{payment_method_id}',
      params: z.object({ payment_method_id: MethodId }),
      response: z.object({ payment_method_id: z.string(), deleted: z.literal(true) }),
      errors: ['payment_method_not_found'],
      summary: 'Remove a saved payment method',
      description: 'Where it was the default, the newest of those that are left is.',
      examples: { response: { payment_method_id: visa.payment_method_id, deleted: true } },
    },
    'consumer.payments.pay': {
      at: 'POST /users/payments/pay',
      idempotent: true,
      rate: 'payment',
      body: z.strictObject({
        order_id: Id,
        /** A saved one, or any of the processor's; `external` claims the order for an integrator's payment. */
        payment_method_id: MethodId,
        /** The method is saved once it has paid. */
        save_payment_method: z.boolean().optional(),
        /** Cents that the customer was shown; another total is answered with `total_changed`. */
        expected_total: Cents.min(0).optional(),
      }),
      response: PaymentResult,
      errors: [...cardErrors, 'external_payments_disabled'],
      summary: 'Pay an order by card; the amount is the server’s',
      description:
        'Unpaid orders hold stock and bins for at most 15 minutes (`PAYMENT_HOLD_MS`), for every method and state. Then the payment is cancelled, the order is NEW again, and money that still arrives is refunded. A user has at most one unpaid order over all hubs: a further call is 409 `order_state_conflict` with `details.order_id`. An order of more than 100 units is 422 `invalid_quantity`; the wallet pays at once and takes any number. `external` claims the order for an integrator, if the hub allows it (else 403 `external_payments_disabled`): the claim lasts 5 minutes, a customer has one claim, and claims never take the last free bin of a hub (409 `no_bin_available`). Card processors have a least amount (50 cents of USD or EUR): a total below it is `amount_too_small`, unless it is nothing, or an integrator takes it (`external`). The wallet pays any (`wallet/debit`).',
      examples: { body: { order_id: 1, payment_method_id: 'pm_card_visa' }, response: paid },
    },
    'consumer.payments.platform_a_pay': { ...walletPay('A'), at: 'POST /users/payments/platform-a-pay' },
    'consumer.payments.platform_b_pay': { ...walletPay('B'), at: 'POST /users/payments/platform-b-pay' },
    'consumer.payments.confirm': {
      at: 'POST /users/payments/confirm-payment',
      idempotent: true,
      body: z.strictObject({
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
  },
)
