import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { schedule } from '../../platform/work/queue.ts'
import { done, type WorkKinds } from '../../platform/work/runner.ts'
import type { Application } from './engine/apply-deal.ts'
import { isAnnouncedFor, notReleased, type Shopper } from './uses.ts'

type Clocked = Pick<CloudContext, 'runtime'>
type Applied = Pick<Application, 'saving'> & { deal: { id: number } }

/** Redeems deals for an order that is frozen; one that was announced for its user is taken up. */
export async function redeem(
  tx: Tx,
  { runtime }: Clocked,
  order: { id: number; user_id: number },
  applications: readonly Applied[],
): Promise<void> {
  const now = runtime.clock.now()
  for (const { deal, saving } of applications) {
    const redemption = { order_id: order.id, discount_amount: saving, redeemed_at: now }
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
          device_uuid: null,
          status: 'pending',
          expires_at: null,
        })
        .execute()
  }
}

/** Announces redemptions of a cart that is no order: they bind the deals' limits until `expiresAt`. */
export async function announce(
  tx: Tx,
  { runtime }: Clocked,
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

/** The order is paid. */
export async function completeRedemptions(tx: Tx, { runtime }: Clocked, orderId: number): Promise<void> {
  await tx.q
    .updateTable('deal_redemptions')
    .set({ status: 'completed', redeemed_at: runtime.clock.now() })
    .where('order_id', '=', orderId)
    .where(notReleased)
    .where('status', '=', 'pending')
    .execute()
}

/** The order ended before its customer had anything of it: its deals may be used again. */
export async function releaseRedemptions(tx: Tx, orderId: number): Promise<void> {
  await tx.q
    .updateTable('deal_redemptions')
    .set({ status: 'released' })
    .where('order_id', '=', orderId)
    .where(notReleased)
    .execute()
}

/** The order is a cart again: what was announced before is an announcement again while its time lasts. */
export async function putBackRedemptions(tx: Tx, { runtime }: Clocked, orderId: number): Promise<void> {
  const announcements = await tx.q
    .updateTable('deal_redemptions')
    .set({ order_id: null })
    .where('order_id', '=', orderId)
    .where(notReleased)
    .where('status', '=', 'pending')
    .where('expires_at', '>', runtime.clock.now())
    .returning(['id', 'expires_at'])
    .execute()
  for (const { id, expires_at } of announcements) await schedule(tx, 'redemption.announced', id, expires_at!)
  await releaseRedemptions(tx, orderId)
}

/** Marks an announcement whose time is over. It has not bound anything since. */
export const redemptionWork = ({ db, runtime }: CloudContext): WorkKinds => ({
  'redemption.announced': {
    async look({ subject }) {
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
