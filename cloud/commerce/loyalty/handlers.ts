import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { pointsFor, pointsValue, readPoints } from './points.ts'

/** C §4.5. */
export const loyaltyHandlers = ({
  db,
  settings,
}: CloudContext): Handlers<'consumer.loyalty.balance' | 'consumer.loyalty.calculate_earnings'> => ({
  async 'consumer.loyalty.balance'({ credential }) {
    const points = await readPoints(db.kysely, credential.userId)
    return { loyalty_points: points, points_value_in_cents: pointsValue(points, settings) }
  },
  'consumer.loyalty.calculate_earnings'({ body }) {
    const points = pointsFor(body.order_total_cents, settings.loyaltyCentsPerPoint)
    return Promise.resolve({
      order_total: body.order_total_cents,
      points_to_earn: points,
      points_value: pointsValue(points, settings),
    })
  },
})
