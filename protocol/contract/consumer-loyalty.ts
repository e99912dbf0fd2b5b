import { z } from 'zod'
import { Cents } from './fields.ts'
import { defineRoutes } from './route.ts'

const common = { interface: 'consumer', auth: { kind: 'user' }, rate: 'standard', tag: 'Loyalty' } as const

/** C §4.5, contract §10. */
export const consumerLoyaltyRoutes = defineRoutes({
  'consumer.loyalty.balance': {
    ...common,
    method: 'GET',
    path: '/users/loyalty/balance',
    response: z.object({ loyalty_points: z.int(), points_value_in_cents: Cents }),
    summary: 'The points of the user, and what they are worth',
    description: 'Points are earned when an order is completed, and taken back with its refunds.',
    examples: { response: { loyalty_points: 12, points_value_in_cents: 12 } },
  },
  'consumer.loyalty.calculate_earnings': {
    ...common,
    method: 'POST',
    path: '/users/loyalty/calculate-earnings',
    body: z.object({
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
})
