import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { DealRedemptions, Redemption } from '../../../protocol/contract/deals.ts'
import { type DealTerms, readTerms } from '../../../protocol/model/deal-terms.ts'
import { appendEvent } from '../../events/append-event.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { pageOf } from '../../platform/http/lists.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import type { Customer, Shopper } from './customers.ts'
import type { StoredDeal } from './deal-rows.ts'
import type { Application } from './engine/apply-deal.ts'
import { hubTime, statusOf, type Uses } from './engine/judge-deal.ts'

type Applied = Pick<Application, 'saving'> & { deal: { id: number } }

/** Redeems deals for a frozen order; uses a pending redemption of its user if there is one. */
export async function redeem(
  tx: Tx,
  { runtime }: CloudContext,
  order: { id: number; user_id: number },
  applications: readonly Applied[],
): Promise<void> {
  if (applications.length === 0) return
  const now = runtime.clock.now()
  const user = await tx.q
    .selectFrom('users')
    .select('device_uuid')
    .where('id', '=', order.user_id)
    .executeTakeFirst()
  const device = user?.device_uuid ?? null
  for (const { deal, saving } of applications) {
    const redemption = { order_id: order.id, cart_id: null, discount_amount: saving, redeemed_at: now }
    const announced = await tx
      .forUpdate(
        tx.q
          .selectFrom('deal_redemptions')
          .select('id')
          .where('deal_id', '=', deal.id)
          .where((eb) => isAnnouncedFor(eb, order.user_id, now))
          .orderBy('id')
          .limit(1),
      )
      .executeTakeFirst()
    if (announced)
      await tx.q.updateTable('deal_redemptions').set(redemption).where('id', '=', announced.id).execute()
    else
      await tx.q
        .insertInto('deal_redemptions')
        .values({
          ...redemption,
          deal_id: deal.id,
          user_id: order.user_id,
          device_uuid: device,
          status: 'pending',
          expires_at: null,
        })
        .execute()
  }
}

/** Stores pending redemptions of a cart that is not an order: they count for the deals' limits until `expiresAt`. */
export async function announce(
  tx: Tx,
  { runtime }: CloudContext,
  { userId, deviceUuid }: Shopper,
  applications: readonly Applied[],
  expiresAt: number,
): Promise<void> {
  for (const { deal, saving } of applications) {
    const { id } = await tx.q
      .insertInto('deal_redemptions')
      .values({
        deal_id: deal.id,
        order_id: null,
        user_id: userId,
        device_uuid: deviceUuid,
        discount_amount: saving,
        status: 'pending',
        redeemed_at: runtime.clock.now(),
        expires_at: expiresAt,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    await schedule(tx, 'redemption.announced', id, expiresAt)
  }
}

/** Completes the redemptions of a paid order. */
export async function completeRedemptions(
  tx: Tx,
  context: CloudContext,
  order: { id: number; hub_id: number; owner_id: number | null },
): Promise<void> {
  const now = context.runtime.clock.now()
  const completed = await tx.q
    .updateTable('deal_redemptions')
    .set({ status: 'completed', redeemed_at: now })
    .where('order_id', '=', order.id)
    .where(notReleased)
    .where('status', '=', 'pending')
    .returningAll()
    .execute()
  for (const row of completed)
    appendEvent(tx, context, {
      type: 'deal.redeemed',
      hubId: order.hub_id,
      ...(order.owner_id !== null && { ownerId: order.owner_id }),
      data: { ...viewRedemption(row, now), deal_id: row.deal_id },
    })
}

/** Releases the redemptions of an order that ended before its customer got a unit: its deals can be used again. */
export async function releaseRedemptions(tx: Tx, orderId: number): Promise<void> {
  await tx.q
    .updateTable('deal_redemptions')
    .set({ status: 'released' })
    .where('order_id', '=', orderId)
    .where(notReleased)
    .execute()
}

/** The order is a cart again: its redemptions are pending again until they expire. */
export async function putBackRedemptions(tx: Tx, { runtime }: CloudContext, orderId: number): Promise<void> {
  const announcements = await tx.q
    .updateTable('deal_redemptions')
    .set({ order_id: null, cart_id: orderId })
    .where('order_id', '=', orderId)
    .where(notReleased)
    .where('status', '=', 'pending')
    .where('expires_at', '>', runtime.clock.now())
    .returning(['id', 'expires_at'])
    .execute()
  for (const { id, expires_at } of announcements) await schedule(tx, 'redemption.announced', id, expires_at!)
  await releaseRedemptions(tx, orderId)
}

/** The cart is deleted: its pending redemptions are released. */
export async function releaseAnnounced(tx: Tx, orderId: number): Promise<void> {
  await tx.q
    .updateTable('deal_redemptions')
    .set({ status: 'released' })
    .where('cart_id', '=', orderId)
    .where(notReleased)
    .execute()
}

/** Moves pending redemptions along with a cart, or with its contents, to another customer. */
export async function passOnAnnounced(
  tx: Tx,
  orderId: number,
  to: { cartId: number; userId: number },
): Promise<void> {
  await tx.q
    .updateTable('deal_redemptions')
    .set({ cart_id: to.cartId, user_id: to.userId })
    .where('cart_id', '=', orderId)
    .where('order_id', 'is', null)
    .where(notReleased)
    .execute()
}

/** Marks an expired pending redemption. It has not counted since its expiry. */
export const redemptionWork = ({ db, runtime }: CloudContext): WorkKinds => ({
  'redemption.announced': {
    async run({ subject }) {
      await db.kysely
        .updateTable('deal_redemptions')
        .set({ status: 'released' })
        .where('id', '=', Number(subject))
        .where('order_id', 'is', null)
        .where('status', '=', 'pending')
        .where('expires_at', '<=', runtime.clock.now())
        .execute()
      return done
    },
  },
})

type Redemptions = ExpressionBuilder<Tables, 'deal_redemptions'>

/** The indexes of counted redemptions are used only with exactly this condition. */
const notReleased = sql<boolean>`status <> 'released'`

/**
 * Redemptions that count for a deal's limits at an instant: completed ones, those of orders that are being paid, and
 * pending ones before their expiry.
 */
const isBinding = (eb: Redemptions, now: number) =>
  eb.and([
    notReleased,
    eb.or([eb('status', '=', 'completed'), eb('order_id', 'is not', null), eb('expires_at', '>', now)]),
  ])

/** Pending redemptions of a user that no order has used. */
const isAnnouncedFor = (eb: Redemptions, userId: number | null, now: number) =>
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

/**
 * The number of uses of a hub's deals that count for a customer, by deal. Uses without a limit are not counted. A
 * former owner's redemptions do not count for the present owner's deals.
 */
export async function countUses(
  q: Queries,
  hubId: number,
  deals: readonly LimitedDeal[],
  { userId, userIds, devices, userIdsOfDevices, takesUp }: Customer,
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
      .where('redeemed_at', '>=', (eb) =>
        eb.selectFrom('hubs').select('owned_since').where('hubs.id', '=', hubId),
      )
      .groupBy('deal_id')

  const total = await counts(
    idsOf(({ maxUses }) => maxUses !== null),
    binding,
  )
  const personal = idsOf(
    ({ maxUsesPerUser, maxUsesPerDevice }) => maxUsesPerUser !== null || maxUsesPerDevice !== null,
  )
  const byAnyOf = (ids: readonly number[], users: readonly number[]) =>
    binding(ids).where((eb) =>
      eb.or([
        ...(users.length > 0 ? [eb('user_id', 'in', users)] : []),
        ...(devices.length > 0 ? [eb('device_uuid', 'in', devices)] : []),
      ]),
    )
  const byUser = await counts(userId === null ? [] : personal, (ids) => byAnyOf(ids, userIds))
  const byDevice = await counts(devices.length === 0 ? [] : personal, (ids) => byAnyOf(ids, userIdsOfDevices))
  const announced = await counts(takesUp ? deals.map(({ id }) => id) : [], (ids) =>
    binding(ids).where((eb) => isAnnouncedFor(eb, userId, now)),
  )

  return ({ id }) => {
    const own = Math.min(1, announced(id))
    const others = (uses: number): number => uses - Math.min(own, uses)
    return {
      total: others(total(id)),
      byUser: userId === null ? null : others(byUser(id)),
      byDevice: devices.length === 0 ? null : others(byDevice(id)),
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

/** Status, usage and redemptions of a deal under its hub's present owner, newest first. Throws `invalid_cursor`. */
export async function redemptionHistory(
  { db, runtime }: CloudContext,
  { row, constraints }: StoredDeal,
  { timezone, owned_since }: { timezone: string; owned_since: number },
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
    .where('redeemed_at', '>=', owned_since)
    .executeTakeFirstOrThrow()
  let page = q
    .selectFrom('deal_redemptions')
    .selectAll()
    .where('deal_id', '=', row.id)
    .where('redeemed_at', '>=', owned_since)
    .orderBy('id', 'desc')
    .limit(limit + 1)
  if (cursor !== null) page = page.where('id', '<', cursor)
  const rows = await page.execute()
  const terms = readTerms(constraints)
  const deal = { isActive: row.is_active === 1, start: row.start_day, end: row.end_day, terms }
  return {
    deal_id: row.id,
    status: statusOf(deal, hubTime(timezone, now).day, total),
    usage: {
      total,
      limit: terms.maxUses,
      remaining: terms.maxUses === null ? null : Math.max(0, terms.maxUses - total),
    },
    total_discount: discount,
    ...pageOf(
      rows.map((found) => viewRedemption(found, now)),
      limit,
      ({ id }) => id,
    ),
  }
}

function viewRedemption(row: Selectable<Tables['deal_redemptions']>, now: number): Redemption {
  const { id, order_id, user_id, device_uuid, discount_amount } = row
  const isOver = row.status === 'pending' && order_id === null && row.expires_at! <= now
  return {
    id,
    order_id,
    user_id,
    device_uuid,
    discount_amount,
    status: isOver ? 'released' : row.status,
    redeemed_at: timestamp(row.redeemed_at),
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
