import type { Selectable } from 'kysely'
import { isInProgress, OrderStatus } from '../../../protocol/model/order-status.ts'
import type { UserCredential } from '../../platform/credentials/credential.ts'
import { endSessionsOf } from '../../platform/credentials/sessions.ts'
import type { CloudContext } from '../../platform/context.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { discardOrder } from '../../commerce/fulfilment/delete-order.ts'
import { removeCart } from '../../commerce/orders/move-order.ts'
import { lockOrder } from '../../commerce/orders/order-rows.ts'
import { removeLater, type Media } from '../../platform/media/media.ts'
import { forgetCustomers, removeCustomers } from '../../commerce/methods/customers.ts'
import type { CommerceServices } from '../../commerce/services.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { forgetActor } from './forget-actor.ts'
import { inProgress, openBusiness, requireNoneInProgress, requireSettled } from './open-business.ts'
import { removeProfileImage } from './profile.ts'

/**
 * Erases a user's personal data and releases the identity. The books stay: orders, payments and the wallet
 * then belong to a user without a name. Carts are deleted first, and the card processor's data of the user
 * last.
 *
 * Throws `wallet_not_empty` if money is open, unless the customer forfeits it.
 * Throws `order_in_progress` if a paid order has not ended.
 */
export async function deleteUser(
  services: CommerceServices,
  media: Media,
  caller: UserCredential,
  giving: { forfeit: boolean },
): Promise<void> {
  const { context } = services
  const open = await openBusiness(context.db.kysely, caller.userId)
  requireNoneInProgress(open)
  requireSettled(open, giving)
  for (const { id } of open.orders) {
    const discarded = await discardOrder(services, { orderId: id, userId: caller.userId })
    // The order was paid in the meantime.
    if (discarded.kind !== 'deleted' && isInProgress(discarded.order.processing_status))
      throw inProgress([id])
  }
  context.checkpoint('user.before-erase')
  const customerIds = await context.db.transact(async (tx) => {
    // This also locks the user.
    await removeProfileImage(tx, media, caller.userId)
    const left = await openBusiness(tx.q, caller.userId)
    if (left.orders.length > 0) throw inProgress(left.orders.map(({ id }) => id))
    requireSettled(left, giving)
    const forgotten = await forgetCustomers(tx, context, caller.userId)
    const user = await tx.q
      .selectFrom('users')
      .selectAll()
      .where('id', '=', caller.userId)
      .executeTakeFirstOrThrow()
    await rememberCustomer(tx, context, user)
    await erase(tx, context, user)
    return forgotten
  })
  context.checkpoint('user.after-erase')
  await removeCustomers(services, customerIds)
}

/**
 * The same in one transaction, without the customer and without a processor: the service removes the customer there. Throws while
 * an order is unfinished, or money is owed to the customer or by the customer. A repetition changes nothing.
 */
export async function eraseByOperator(
  tx: Tx,
  context: CloudContext,
  userId: number,
): Promise<{ erasedAt: number; isNew: boolean }> {
  const user = await tx
    .forUpdate(tx.q.selectFrom('users').selectAll().where('id', '=', userId))
    .executeTakeFirst()
  if (!user) throw new Error(`no such user: ${userId}`)
  if (user.deleted_at !== null) return { erasedAt: user.deleted_at, isNew: false }
  const { orders, ...money } = await openBusiness(tx.q, userId)
  for (const { id } of orders) {
    const order = (await lockOrder(tx, id))!
    if (order.processing_status !== OrderStatus.NEW)
      throw new Error(`order_in_progress: order ${id} of user ${userId} is not finished`)
    await removeCart(tx, context, order)
  }
  // A debt ends with the customer: the operator must be able to follow a request for erasure.
  const due = Object.entries(money).filter(([name, cents]) => name !== 'debt' && cents > 0)
  if (due.length > 0)
    throw new Error(
      `wallet_not_empty: user ${userId} has open money in cents: ${due.map((one) => one.join(' ')).join(', ')}`,
    )
  if (user.profile_image_key !== null)
    await removeLater(tx, user.profile_image_key, context.runtime.clock.now())
  await forgetCustomers(tx, context, userId)
  // The marks of the customer were stored with the contacts; they need the store's secret, which the command line lacks.
  await erase(tx, context, user)
  return { erasedAt: context.runtime.clock.now(), isNew: true }
}

type UserRow = Pick<Selectable<Tables['users']>, 'id' | 'identity'>

/** Erases the personal data of a locked user. The row stays. */
export async function erase(tx: Tx, context: CloudContext, { id: userId, identity }: UserRow): Promise<void> {
  const now = context.runtime.clock.now()
  await tx.q
    .updateTable('deal_redemptions')
    .set({ device_uuid: null })
    .where('user_id', '=', userId)
    .where('device_uuid', 'is not', null)
    .execute()
  await tx.q.deleteFrom('push_configs').where('user_id', '=', userId).execute()
  await tx.q.deleteFrom('notifications').where('user_id', '=', userId).execute()
  if (identity !== null) {
    await endSessionsOf(tx.q, identity)
    await forgetActor(tx, identity, userId)
    // Stored answers name the caller, and a later user of the same identity must not get them.
    const actor = `identity:${identity}`
    await tx.q.deleteFrom('idempotency_keys').where('credential', '=', actor).execute()
  }
  await tx.q
    .updateTable('users')
    .set({
      identity: null,
      email: null,
      email_verified: 0,
      phone_number: null,
      phone_verified: 0,
      first_name: null,
      last_name: null,
      profile_image_key: null,
      selected_hub_id: null,
      default_hub_id: null,
      date_of_birth: null,
      locale: null,
      device_uuid: null,
      notify_push: 0,
      notify_email: 0,
      notify_sms: 0,
      deleted_at: now,
      updated_at: now,
    })
    .where('id', '=', userId)
    .execute()
}
