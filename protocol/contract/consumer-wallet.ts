import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { Id, Cents, OrderId, OrderIdOrNull, Currency, CreatedAt, ExpectedTotal } from './fields.ts'
import { PaymentResult, payingErrors } from './consumer-payments.ts'
import { defineRoutes } from './route.ts'

export const WalletBalance = z
  .object({
    balance_cents: Cents.describe('Balance in cents, never below 0.'),
    pending_cents: Cents.describe('Deposits that the processor has not reported yet, in cents.'),
    currency: Currency,
  })
  .meta({ id: 'WalletBalance', description: 'Balance of a wallet.' })
export type WalletBalance = z.infer<typeof WalletBalance>

export const WalletTransactionType = namedEnum('WalletTransactionType', 'Kind of a transaction.', {
  deposit: 'money of the customer.',
  debit: 'payment of an order.',
  refund: 'refund of an order.',
  adjustment: 'correction, for example after a chargeback.',
})
export const WalletTransactionStatus = namedEnum('WalletTransactionStatus', 'State of a transaction.', {
  pending: 'the processor has not reported yet.',
  completed: 'the balance has changed.',
  failed: 'it failed; the balance has not changed.',
  canceled: 'it was cancelled; the balance has not changed.',
})

/** Fields that the contract marks with `?` are always present here; null if there is no value. */
export const WalletTransaction = z
  .object({
    id: Id.describe('Number of the transaction.'),
    type: WalletTransactionType,
    amount_cents: Cents.describe(
      'Change of the balance in cents: positive for money in, negative for money out.',
    ),
    balance_after_cents: Cents.nullable().describe(
      'Balance after the transaction, in cents; null while the balance has not changed.',
    ),
    status: WalletTransactionStatus,
    order_id: OrderIdOrNull,
    payment_intent_id: z
      .string()
      .nullable()
      .describe('Id of the payment at the processor; null if no processor is involved.'),
    description: z.string().describe('Description of the transaction for people.'),
    created_at: CreatedAt,
  })
  .meta({ id: 'WalletTransaction', description: 'A transaction of a wallet.' })
export type WalletTransaction = z.infer<typeof WalletTransaction>

export const DepositResponse = z
  .object({
    transaction_id: Id.describe('`id` of the deposit among the transactions.'),
    payment_intent_id: z.string().describe('Id of the payment at the processor.'),
    client_secret: z.string().describe('Secret with which the processor’s own form continues the payment.'),
    status: z.literal('pending').describe('Always `pending`: the processor’s webhook completes the deposit.'),
    amount_cents: Cents.describe('Amount of the deposit in cents.'),
  })
  .meta({ id: 'DepositResponse', description: 'A deposit that has started.' })
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
        'If a bank takes a deposit back after it was spent, the difference is a debt: `balance_cents` is 0, and later credits pay the debt first. The transactions show both as adjustments.',
      examples: { response: { balance_cents: 2500, pending_cents: 1000, currency: 'USD' } },
    },
    'consumer.wallet.deposit': {
      at: 'POST /users/wallet/deposit',
      rate: 'payment',
      body: z.strictObject({
        amount_cents: z
          .int()
          .min(1)
          .max(100_000_000)
          .describe('Amount in cents, 100 to 50000 unless the operator has set other bounds.'),
        payment_method_id: z
          .string()
          .min(1)
          .max(255)
          .optional()
          .describe(
            'Id of the payment method. If it is left out: the customer chooses one in the processor’s own form, opened with `client_secret`.',
          ),
      }),
      response: DepositResponse,
      errors: ['payment_method_not_found', 'card_declined', 'payment_failed', 'processor_unavailable'],
      idempotent: true,
      summary: 'Start a deposit with a payment at the card processor',
      description:
        'The processor’s webhook credits the wallet when the payment succeeds; this call does not. The amount is 100 to 50000 cents unless the operator has set other bounds, and at least the minimum of the card processor.',
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
        limit: z.int().min(1).max(100).default(50).describe('Maximum number of transactions of the answer.'),
        offset: z.int().min(0).default(0).describe('Number of transactions to skip.'),
      }),
      response: z.array(WalletTransaction),
      summary: 'List the transactions of the wallet, newest first',
      description:
        'Deposits, debits, refunds and adjustments; a page that is shorter than `limit` is the last.',
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
        order_id: OrderId,
        expected_total: ExpectedTotal,
      }),
      response: PaymentResult,
      errors: [...payingErrors, 'insufficient_funds'],
      idempotent: true,
      summary: 'Pay an order from the wallet',
      description:
        'The order goes to the hub as with any payment. A card payment of the same order that waits for its customer is cancelled first. If the outcome of that payment is not known yet, the answer reports it.',
      examples: { body: { order_id: 1, expected_total: 541 } },
    },
    'consumer.loyalty.balance': {
      at: 'GET /users/loyalty/balance',
      tag: 'Loyalty',
      response: z.object({
        loyalty_points: z.int().describe('Number of points.'),
        points_value_in_cents: Cents.describe('Value of the points in cents.'),
      }),
      summary: 'Read the loyalty points of the user and their value',
      description: 'Points are earned when an order is completed. Refunds take them back.',
      examples: { response: { loyalty_points: 12, points_value_in_cents: 12 } },
    },
    'consumer.loyalty.calculate_earnings': {
      at: 'POST /users/loyalty/calculate-earnings',
      tag: 'Loyalty',
      body: z.strictObject({
        order_total_cents: Cents.min(0)
          .max(100_000_000)
          .describe('Subtotal after deals and before tax, in cents.'),
      }),
      response: z.object({
        order_total: Cents.describe('The same subtotal, in cents.'),
        points_to_earn: z.int().describe('Points that the order would earn.'),
        points_value: Cents.describe('Value of these points in cents.'),
      }),
      summary: 'Calculate the points that an order would earn',
      description: 'Nothing is stored. The customer earns points when an order is COMPLETED.',
      examples: {
        body: { order_total_cents: 1299 },
        response: { order_total: 1299, points_to_earn: 12, points_value: 12 },
      },
    },
  },
)
