import { z } from 'zod'
import { Cents, Id, Timestamp } from './fields.ts'
import { PaymentResult, payingErrors } from './consumer-payments.ts'
import { defineRoutes } from './route.ts'

/** `pending_cents`: deposits of which the processor has not reported yet. */
export const WalletBalance = z
  .object({ balance_cents: Cents, pending_cents: Cents, currency: z.string() })
  .meta({ id: 'WalletBalance' })
export type WalletBalance = z.infer<typeof WalletBalance>

export const WalletTransactionType = z
  .enum(['deposit', 'debit', 'refund', 'adjustment'])
  .meta({ id: 'WalletTransactionType' })
export const WalletTransactionStatus = z
  .enum(['pending', 'completed', 'failed', 'canceled'])
  .meta({ id: 'WalletTransactionStatus' })

/** What the contract marks with `?` is always present here, and null where there is nothing to say. */
export const WalletTransaction = z
  .object({
    id: Id,
    type: WalletTransactionType,
    /** Signed. */
    amount_cents: Cents,
    /** Null while the balance has not moved. */
    balance_after_cents: Cents.nullable(),
    status: WalletTransactionStatus,
    order_id: Id.nullable(),
    payment_intent_id: z.string().nullable(),
    description: z.string(),
    created_at: Timestamp,
  })
  .meta({ id: 'WalletTransaction' })
export type WalletTransaction = z.infer<typeof WalletTransaction>

export const DepositResponse = z
  .object({
    /** The `id` of the deposit among the transactions. */
    transaction_id: Id,
    payment_intent_id: z.string(),
    client_secret: z.string(),
    status: z.literal('pending'),
    amount_cents: Cents,
  })
  .meta({ id: 'DepositResponse' })
export type DepositResponse = z.infer<typeof DepositResponse>

/** C §4.5 and §4.6: the prepaid wallet and the points. */
export const consumerWalletRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Wallet' },
  {
    'consumer.wallet.balance': {
      at: 'GET /users/wallet/balance',
      response: WalletBalance,
      summary: 'The balance of the prepaid wallet',
      description:
        'If a bank takes a deposit back after it was spent, the rest is a debt. `balance_cents` is 0 then, and later credits pay the debt first. The transactions show both as adjustments.',
      examples: { response: { balance_cents: 2500, pending_cents: 1000, currency: 'USD' } },
    },
    'consumer.wallet.deposit': {
      at: 'POST /users/wallet/deposit',
      rate: 'payment',
      body: z.strictObject({
        /** 100 to 50000, where the operator has not set other bounds. */
        amount_cents: z.int().min(1).max(100_000_000),
        /** Where absent, the customer chooses one in the processor's own form, with the `client_secret`. */
        payment_method_id: z.string().min(1).max(255).optional(),
      }),
      response: DepositResponse,
      errors: ['payment_method_not_found', 'card_declined', 'payment_failed', 'processor_unavailable'],
      idempotent: true,
      summary: 'Begin a deposit: creates a payment intent at the card processor',
      description:
        'The wallet is credited when the processor’s webhook reports the payment’s success, and not by this call. The amount is 100 to 50000 cents unless the operator has set other bounds, and never less than the card processor takes.',
      examples: {
        body: { amount_cents: 2500, payment_method_id: 'pm_card_visa' },
        response: {
          transaction_id: 1,
          payment_intent_id: 'pi_1',
          client_secret: 'pi_1_secret_1',
          status: 'pending',
          amount_cents: 2500,
        },
      },
    },
    'consumer.wallet.transactions': {
      at: 'GET /users/wallet/transactions',
      query: z.object({
        limit: z.int().min(1).max(100).default(50),
        offset: z.int().min(0).default(0),
      }),
      response: z.array(WalletTransaction),
      summary: 'What has moved the wallet, newest first',
      examples: {
        response: [
          {
            id: 2,
            type: 'debit',
            amount_cents: -541,
            balance_after_cents: 1959,
            status: 'completed',
            order_id: 7,
            payment_intent_id: null,
            description: 'Payment of order 7',
            created_at: '2026-01-02T03:04:05.000Z',
          },
        ],
      },
    },
    'consumer.wallet.debit': {
      at: 'POST /users/wallet/debit',
      rate: 'payment',
      body: z.strictObject({
        order_id: Id,
        /** Cents that the customer was shown; another total is answered with `total_changed`. */
        expected_total: Cents.min(0).optional(),
      }),
      response: PaymentResult,
      errors: [...payingErrors, 'insufficient_funds'],
      idempotent: true,
      summary: 'Pay an order from the wallet',
      description:
        'The order goes to the hub as with any payment. A card payment of the same order that waits for its customer is given up first; of one whose outcome is not known yet this tells the outcome.',
      examples: { body: { order_id: 1, expected_total: 541 } },
    },
    'consumer.loyalty.balance': {
      at: 'GET /users/loyalty/balance',
      tag: 'Loyalty',
      response: z.object({ loyalty_points: z.int(), points_value_in_cents: Cents }),
      summary: 'The points of the user, and what they are worth',
      description: 'Points are earned when an order is completed, and taken back with its refunds.',
      examples: { response: { loyalty_points: 12, points_value_in_cents: 12 } },
    },
    'consumer.loyalty.calculate_earnings': {
      at: 'POST /users/loyalty/calculate-earnings',
      tag: 'Loyalty',
      body: z.strictObject({
        /** The subtotal after deal discounts and before tax. */
        order_total_cents: Cents.min(0).max(100_000_000),
      }),
      response: z.object({ order_total: Cents, points_to_earn: z.int(), points_value: Cents }),
      summary: 'What an order of this subtotal would earn',
      examples: {
        body: { order_total_cents: 1299 },
        response: { order_total: 1299, points_to_earn: 12, points_value: 12 },
      },
    },
  },
)
