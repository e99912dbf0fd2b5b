import { sql, type ExpressionBuilder } from 'kysely'
import type { DealTerms } from '../../../protocol/model/deal-terms.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { Uses } from './engine/judge-deal.ts'

/** Whoever a cart belongs to, as far as the caller says. */
export interface Shopper {
  userId: number | null
  deviceUuid: string | null
  /** The cart is an order to be paid: it takes up what was announced for its user. */
  takesUp: boolean
}

type Redemptions = ExpressionBuilder<Tables, 'deal_redemptions'>

/** In these words the indexes of redemptions that may bind are used, and in no others. */
export const notReleased = sql<boolean>`status <> 'released'`

/**
 * Redemptions that bind a deal's limits at an instant: completed ones, those of orders that are being paid, and announced
 * ones within their time.
 */
export const isBinding = (eb: Redemptions, now: number) =>
  eb.and([
    notReleased,
    eb.or([eb('status', '=', 'completed'), eb('order_id', 'is not', null), eb('expires_at', '>', now)]),
  ])

/** Those that were announced for a user and that no order has taken up. */
export const isAnnouncedFor = (eb: Redemptions, userId: number | null, now: number) =>
  eb.and([
    notReleased,
    eb('status', '=', 'pending'),
    eb('order_id', 'is', null),
    eb('user_id', '=', userId),
    eb('expires_at', '>', now),
  ])

interface LimitedDeal {
  id: number
  terms: DealTerms
}

/** How often deals are used, as it binds a shopper; by deal. What no limit asks for is not counted. */
export async function countUses(
  q: Queries,
  deals: readonly LimitedDeal[],
  { userId, deviceUuid, takesUp }: Shopper,
  now: number,
): Promise<(deal: { id: number }) => Uses> {
  const idsOf = (isMeant: (terms: DealTerms) => boolean): number[] =>
    deals.filter(({ terms }) => isMeant(terms)).map(({ id }) => id)
  const binding = (ids: readonly number[]) =>
    q
      .selectFrom('deal_redemptions')
      .select((eb) => ['deal_id', eb.fn.countAll<number>().as('count')])
      .where('deal_id', 'in', ids)
      .where((eb) => isBinding(eb, now))
      .groupBy('deal_id')

  const total = await counts(
    idsOf(({ maxUses }) => maxUses !== null),
    binding,
  )
  const personal = idsOf(
    ({ maxUsesPerUser, maxUsesPerDevice }) => maxUsesPerUser !== null || maxUsesPerDevice !== null,
  )
  const byUser = await counts(userId === null ? [] : personal, (ids) =>
    binding(ids).where('user_id', '=', userId),
  )
  const byDevice = await counts(deviceUuid === null ? [] : personal, (ids) =>
    binding(ids).where('device_uuid', '=', deviceUuid),
  )
  const announced = await counts(takesUp ? deals.map(({ id }) => id) : [], (ids) =>
    binding(ids).where((eb) => isAnnouncedFor(eb, userId, now)),
  )

  return ({ id }) => {
    const own = Math.min(1, announced(id))
    return {
      total: total(id) - Math.min(own, total(id)),
      byUser: userId === null ? null : byUser(id) - Math.min(own, byUser(id)),
      byDevice: deviceUuid === null ? null : byDevice(id),
    }
  }
}

async function counts(
  ids: readonly number[],
  query: (ids: readonly number[]) => { execute(): Promise<{ deal_id: number; count: number }[]> },
): Promise<(id: number) => number> {
  const rows = ids.length === 0 ? [] : await query(ids).execute()
  const byDeal = new Map(rows.map(({ deal_id, count }) => [deal_id, count]))
  return (id) => byDeal.get(id) ?? 0
}
