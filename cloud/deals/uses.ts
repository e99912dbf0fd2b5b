import { sql, type Expression, type ExpressionBuilder, type SqlBool } from 'kysely'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import type { Uses } from './engine/judge-deal.ts'

/** Whoever a cart belongs to, as far as the caller says. */
export interface Shopper {
  userId: number | null
  deviceUuid: string | null
  /** The cart is an order to be paid: it takes up what was announced for its user. */
  takesUp: boolean
}

/**
 * Redemptions that bind a deal's limits at an instant: completed ones, those of orders that are being paid, and announced
 * ones within their time.
 */
export const isBinding = (eb: ExpressionBuilder<Tables, 'deal_redemptions'>, now: number) =>
  eb.and([
    // As the index of such rows has it.
    sql<boolean>`status <> 'released'`,
    eb.or([eb('status', '=', 'completed'), eb('order_id', 'is not', null), eb('expires_at', '>', now)]),
  ])

/** Those that were announced for a user and that no order has taken up. */
export const isAnnouncedFor = (
  eb: ExpressionBuilder<Tables, 'deal_redemptions'>,
  userId: number | null,
  now: number,
) =>
  eb.and([
    eb('status', '=', 'pending'),
    eb('order_id', 'is', null),
    eb('user_id', '=', userId),
    eb('expires_at', '>', now),
  ])

/** How often deals are used, as it binds a shopper; by deal. */
export async function countUses(
  q: Queries,
  dealIds: readonly number[],
  { userId, deviceUuid, takesUp }: Shopper,
  now: number,
): Promise<(dealId: number) => Uses> {
  const unused: Uses = {
    total: 0,
    byUser: userId === null ? null : 0,
    byDevice: deviceUuid === null ? null : 0,
  }
  if (dealIds.length === 0) return () => unused
  const rows = await q
    .selectFrom('deal_redemptions')
    .select((eb) => {
      const when = (condition: Expression<SqlBool>) =>
        sql<number>`coalesce(sum(case when ${condition} then 1 else 0 end), 0)`
      return [
        'deal_id',
        eb.fn.countAll<number>().as('total'),
        when(eb('user_id', '=', userId)).as('by_user'),
        when(eb('device_uuid', '=', deviceUuid)).as('by_device'),
        when(isAnnouncedFor(eb, userId, now)).as('announced'),
      ]
    })
    .where('deal_id', 'in', dealIds)
    .where((eb) => isBinding(eb, now))
    .groupBy('deal_id')
    .execute()
  const byDeal = new Map(
    rows.map((row) => {
      const own = takesUp ? Math.min(1, row.announced) : 0
      const uses: Uses = {
        total: row.total - own,
        byUser: userId === null ? null : row.by_user - own,
        byDevice: deviceUuid === null ? null : row.by_device,
      }
      return [row.deal_id, uses] as const
    }),
  )
  return (dealId) => byDeal.get(dealId) ?? unused
}
