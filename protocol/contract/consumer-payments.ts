import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import {
  Cents,
  HubId,
  OrderId,
  CreatedAt,
  ExpectedTotal,
  ProcessingStatus,
  PaymentStatus,
  BinNumber,
} from './fields.ts'
import { defineRoutes } from './route.ts'

/** `status` in the words of Stripe's PaymentIntent. */
export const PaymentIntentStatus = namedEnum(
  'PaymentIntentStatus',
  'State of the payment at the processor.',
  {
    requires_payment_method: 'the payment needs another method.',
    requires_confirmation: 'the payment must be confirmed.',
    requires_action: 'the card’s holder or the integrator must act: see `next_action`.',
    processing: 'the processor is working on it.',
    requires_capture: 'the amount is reserved and not yet charged.',
    canceled: 'the payment was cancelled.',
    succeeded: 'the payment succeeded.',
  },
)

export const PaymentResult = z
  .object({
    order_id: OrderId,
    payment_id: z
      .string()
      .describe(
        'Id of the payment at the processor, or `pay_<number>` if no processor is involved. `confirm-payment` takes it as `payment_intent_id`.',
      ),
    status: PaymentIntentStatus,
    payment_status: PaymentStatus,
    processing_status: ProcessingStatus,
    amount: Cents.describe('Amount of the payment, tax included, in cents.'),
    client_secret: z
      .string()
      .nullable()
      .describe(
        'Secret with which the processor’s own form continues the payment; null if no form is needed.',
      ),
    next_action: z
      .discriminatedUnion('type', [
        z
          .object({
            type: z
              .literal('integrator_confirmation')
              .describe('The integrator takes the money and confirms it with `open_bin`.'),
            hub_id: HubId,
            bin_number: BinNumber,
          })
          .meta({
            id: 'IntegratorConfirmation',
            description: 'The integrator takes the money and confirms it.',
          }),
        z
          .object({
            type: z
              .literal('authenticate')
              .describe(
                'The card’s issuer asks its holder: complete it in the processor’s form, then call `confirm-payment`.',
              ),
            payment_intent_id: z.string().describe('Id of the payment for `confirm-payment`.'),
          })
          .meta({ id: 'HolderAuthentication', description: 'The card’s holder must authenticate.' }),
      ])
      .nullable()
      .describe('Step that completes the payment; null if there is none.'),
    decline_code: z
      .string()
      .nullable()
      .describe(
        'Reason of the bank for declining the card, as the processor names it; null if the card was not declined.',
      ),
  })
  .meta({ id: 'PaymentResult', description: 'Result of a payment.' })
export type PaymentResult = z.infer<typeof PaymentResult>

/** Kind of a saved payment method: a card, or a card in one of the two mobile wallets (C §4.4). */
export const PaymentMethodType = namedEnum('PaymentMethodType', 'Kind of a payment method.', {
  card: 'a card.',
  platform_a: 'a card in a mobile wallet of platform A.',
  platform_b: 'a card in a mobile wallet of platform B.',
})
export type PaymentMethodType = z.infer<typeof PaymentMethodType>

/** `brand` in the processor's words (`visa`, `mastercard`, …). */
export const PaymentMethod = z
  .object({
    payment_method_id: z.string().describe('Id of the saved payment method.'),
    type: PaymentMethodType,
    brand: z.string().describe('Brand of the card in the processor’s words, such as `visa`.'),
    last4: z.string().describe('Last four digits of the card.'),
    exp_month: z.int().describe('Month of expiry, 1 to 12.'),
    exp_year: z.int().describe('Year of expiry, four digits.'),
    is_default: z.boolean().describe('True if this is the customer’s default method.'),
    created_at: CreatedAt,
  })
  .meta({ id: 'PaymentMethod', description: 'A saved payment method.' })
export type PaymentMethod = z.infer<typeof PaymentMethod>

const SetupIntentStatus = namedEnum('SetupIntentStatus', 'State of the setup intent at the processor.', {
  requires_payment_method: 'the customer has not chosen a method.',
  requires_confirmation: 'the method must be confirmed.',
  requires_action: 'the card’s holder must act in the form.',
  processing: 'the processor is working on it.',
  canceled: 'it was cancelled.',
  succeeded: 'the method can be saved.',
})

/** With it the processor's own form takes a card, which is then saved. `status` in the words of Stripe's SetupIntent. */
export const SetupIntentSecret = z
  .object({
    setup_intent_id: z.string().describe('Id of the setup intent at the processor.'),
    client_secret: z.string().describe('Secret that opens the processor’s own form.'),
    status: SetupIntentStatus,
  })
  .meta({
    id: 'SetupIntentSecret',
    description: 'Secret that opens the processor’s form for a new payment method.',
  })
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
      order_id: OrderId,
      wallet_token: z
        .string()
        .min(1)
        .max(5000)
        .describe(
          'Token (`tok_…`) or payment method (`pm_…`) that the processor’s library returned in the app.',
        ),
      expected_total: ExpectedTotal,
    }),
    response: PaymentResult,
    errors: cardErrors,
    summary: `Pay an order with a mobile wallet of platform ${platform}`,
    description:
      'Pays like `pay` with a card. The sandbox takes its test cards as `pm_card_…` and `tok_…`: `tok_visa` pays, `tok_chargeDeclined` is declined, `tok_authenticationRequired` asks the holder. Unknown names of this kind are 404. Any other text is the token of a wallet that pays.',
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
      summary: 'Start to save a payment method in the processor’s own form',
      description:
        'The app opens the processor’s form with `client_secret`. The form returns the id of a payment method; `save-payment-method` saves it.',
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
      body: z.strictObject({
        payment_method_id: MethodId.describe(
          'Id from the processor’s form (`pm_…`) or token of a mobile wallet (`tok_…`).',
        ),
        set_default: z
          .boolean()
          .optional()
          .describe(
            'True makes it the default method. If it is left out: only the first saved method becomes the default.',
          ),
      }),
      response: PaymentMethod,
      errors: ['payment_method_not_found', 'card_declined', 'processor_unavailable'],
      summary: 'Save a payment method',
      description:
        'Saves the result of the processor’s form or of a mobile wallet: a payment method (`pm_…`) or a wallet token (`tok_…`), which becomes a method. The answer has the id of the method. `type` is the processor’s word: `platform_a` or `platform_b` for a card in a mobile wallet. A method that is already saved is returned unchanged. A customer can save 50 methods. The sandbox takes the names of its test cards, each time for a new method: `pm_card_visa` for a card, `tok_visa` (or `tok_platform_a_visa`) for the same card in a wallet of platform A, `tok_platform_b_visa` for platform B.',
      examples: { body: { payment_method_id: 'pm_card_visa', set_default: true }, response: visa },
    },
    'consumer.payments.methods': {
      at: 'GET /users/payments/methods',
      response: z.array(PaymentMethod),
      summary: 'Saved payment methods, the default first, then the newest',
      description: 'Only methods of this customer. Numbers of cards are never stored here.',
      examples: { response: [visa] },
    },
    'consumer.payments.delete_method': {
      at: 'DELETE /users/payments/methods/{payment_method_id}',
      params: z.object({ payment_method_id: MethodId.describe('Id of the saved payment method.') }),
      response: z.object({
        payment_method_id: z.string().describe('Id of the removed payment method.'),
        deleted: z.literal(true).describe('Always true.'),
      }),
      errors: ['payment_method_not_found'],
      summary: 'Remove a saved payment method',
      description: 'If it was the default, the newest of the remaining methods becomes the default.',
      examples: { response: { payment_method_id: visa.payment_method_id, deleted: true } },
    },
    'consumer.payments.pay': {
      at: 'POST /users/payments/pay',
      idempotent: true,
      rate: 'payment',
      body: z.strictObject({
        order_id: OrderId,
        payment_method_id: MethodId.describe(
          'Id of a saved method or of the processor’s, or `external`, which claims the order for an integrator’s payment.',
        ),
        save_payment_method: z
          .boolean()
          .optional()
          .describe('True saves the method after it has paid. If it is left out: the method is not saved.'),
        expected_total: ExpectedTotal,
      }),
      response: PaymentResult,
      errors: [...cardErrors, 'external_payments_disabled'],
      summary: 'Pay an order by card; the server sets the amount',
      description:
        'Unpaid orders hold stock and bins for at most 15 minutes (`PAYMENT_HOLD_MS`), for every method and state. Then the payment is cancelled and the order is NEW again; money that still arrives is refunded. A user has at most one unpaid order over all hubs: a further call is 409 `order_state_conflict` with `details.order_id`. A further payment by another method goes on with the same hold. Unpaid orders of the guests of one network (IPv4 /32, IPv6 /64) reserve at most 200 units at a hub; beyond that the call is 429 with `details.share_of: network`. An unpaid order has at most 100 units, else 422 `invalid_quantity`; the wallet pays at once and takes any number. `external` claims the order for an integrator, if the hub allows it, else 403 `external_payments_disabled`. A claim lasts 5 minutes, a customer has one claim, and claims never take the last free bin of a hub (409 `no_bin_available`). Card processors have a minimum amount (50 cents of USD or EUR): a lower total is 422 `amount_too_small`, unless it is 0 or an integrator takes it. The wallet pays any total (`wallet/debit`).',
      examples: { body: { order_id: 1, payment_method_id: 'pm_card_visa' }, response: paid },
    },
    'consumer.payments.platform_a_pay': { ...walletPay('A'), at: 'POST /users/payments/platform-a-pay' },
    'consumer.payments.platform_b_pay': { ...walletPay('B'), at: 'POST /users/payments/platform-b-pay' },
    'consumer.payments.confirm': {
      at: 'POST /users/payments/confirm-payment',
      idempotent: true,
      body: z.strictObject({
        order_id: OrderId,
        payment_intent_id: z.string().min(1).max(255).describe('`payment_id` of the payment’s result.'),
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
      description:
        'Call it after the processor’s form has succeeded. The call reads the payment at the processor and moves the order to QUEUED. It can be repeated.',
      examples: { body: { order_id: 1, payment_intent_id: 'pi_1' } },
    },
  },
)
