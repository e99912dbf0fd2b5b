import type { DealRedemptions } from '../../../protocol/contract/deals.ts'
import { readTerms } from '../../../protocol/model/deal-terms.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { StoredDeal } from './deal-rows.ts'
import { statusOf } from './engine/judge-deal.ts'
import { hubTime } from './hub-time.ts'
import { isBinding } from './uses.ts'

/** Status, usage and redemptions of a deal, newest first (contract §8). Throws `invalid_cursor`. */
export async function redemptionHistory(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  { row, constraints }: StoredDeal,
  timezone: string,
  { limit, cursor }: { limit: number; cursor: number | null },
): Promise<DealRedemptions> {
  const q = db.kysely
  const now = runtime.clock.now()
  if (cursor !== null) await requireCursor(q, row.id, cursor)
  const { total, discount } = await q
    .selectFrom('deal_redemptions')
    .select((eb) => [
      eb.fn.countAll<number>().as('total'),
      eb.fn.coalesce(eb.fn.sum<number>('discount_amount'), eb.lit(0)).as('discount'),
    ])
    .where('deal_id', '=', row.id)
    .where((eb) => isBinding(eb, now))
    .executeTakeFirstOrThrow()
  let page = q
    .selectFrom('deal_redemptions')
    .selectAll()
    .where('deal_id', '=', row.id)
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (cursor !== null) page = page.where('id', '<', cursor)
  const rows = await page.execute()
  const shown = rows.slice(0, limit)
  const terms = readTerms(constraints)
  const deal = { isActive: row.is_active === 1, start: row.start_day, end: row.end_day, terms }
  const hasMore = rows.length > limit
  return {
    deal_id: row.id,
    status: statusOf(deal, hubTime(timezone, now).day, total),
    usage: {
      total,
      limit: terms.maxUses,
      remaining: terms.maxUses === null ? null : Math.max(0, terms.maxUses - total),
    },
    total_discount: discount,
    data: shown.map(({ id, order_id, user_id, device_uuid, discount_amount, ...redemption }) => ({
      id,
      order_id,
      user_id,
      device_uuid,
      discount_amount,
      status:
        redemption.status === 'pending' && order_id === null && redemption.expires_at! <= now
          ? 'released'
          : redemption.status,
      redeemed_at: timestamp(redemption.redeemed_at),
    })),
    next_cursor: hasMore ? shown.at(-1)!.id : null,
    has_more: hasMore,
  }
}

async function requireCursor(q: Queries, dealId: number, cursor: number): Promise<void> {
  const known = await q
    .selectFrom('deal_redemptions')
    .select('id')
    .where('id', '=', cursor)
    .where('deal_id', '=', dealId)
    .executeTakeFirst()
  if (!known) throw new ApiError('invalid_cursor', 'The cursor is not a redemption of this deal.')
}
