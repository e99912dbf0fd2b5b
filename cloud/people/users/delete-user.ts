import { sql, type Selectable, type SqlBool } from 'kysely'
import { isInProgress, OrderStatus } from '../../../protocol/model/order-status.ts'
import type { UserCredential } from '../../platform/credentials/credential.ts'
import { endSessionsOf } from '../../platform/credentials/sessions.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { discardOrder } from '../../commerce/fulfilment/delete-order.ts'
import { removeCart } from '../../commerce/orders/move-order.ts'
import { LAST_ACTIVE, lockOrder } from '../../commerce/orders/order-rows.ts'
import { removeLater, type Media } from '../../platform/media/media.ts'
import { forgetCustomers, removeCustomers } from '../../commerce/methods/customers.ts'
import { openDeposits } from '../../commerce/ledger/deposit.ts'
import { balanceOf } from '../../commerce/ledger/ledger.ts'
import type { CommerceServices } from '../../commerce/services.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { forgetActor } from './forget-actor.ts'
import { removeProfileImage } from './profile.ts'

/**
 * Erases a user's personal data and releases the identity. The books stay: orders, payments and the wallet
 * then belong to a user without a name. Carts are deleted first, and the card processor's data of the user
 * last.
 *
 * Throws `wallet_not_empty` if the wallet holds money or may yet receive some, unless the user forfeits it.
 * Throws `order_in_progress` if a paid order has not ended.
 */
export async function deleteUser(
  services: CommerceServices,
  media: Media,
  caller: UserCredential,
  { forfeit }: { forfeit: boolean },
): Promise<void> {
  const { context } = services
  if (!forfeit) await requireEmptyWallet(context.db.kysely, caller.userId)
  for (const { id } of await activeOrders(context.db.kysely, caller.userId)) {
    const discarded = await discardOrder(services, { orderId: id, userId: caller.userId })
    // The order was paid in the meantime.
    if (discarded.kind !== 'deleted' && isInProgress(discarded.order.processing_status))
      throw inProgress([id])
  }
  context.checkpoint('user.before-erase')
  await context.db.transact(async (tx) => {
    // This also locks the user.
    await removeProfileImage(tx, media, caller.userId)
    const left = await activeOrders(tx.q, caller.userId)
    if (left.length > 0) throw inProgress(left.map(({ id }) => id))
    if (!forfeit) await requireEmptyWallet(tx.q, caller.userId)
    await forgetCustomers(tx, context, caller.userId)
    const user = await tx.q
      .selectFrom('users')
      .selectAll()
      .where('id', '=', caller.userId)
      .executeTakeFirstOrThrow()
    await rememberCustomer(tx, context, user)
    await erase(tx, context, user)
  })
  context.checkpoint('user.after-erase')
  await removeCustomers(services, caller.userId)
}

/** Oldest first. Throws `order_in_progress` if a hub must end any of them. */
async function activeOrders(q: Queries, userId: number): Promise<{ id: number }[]> {
  const active = await ordersOf(q, userId)
  const held = active.filter((order) => isInProgress(order.processing_status))
  if (held.length > 0) throw inProgress(held.map(({ id }) => id))
  return active
}

const ordersOf = (q: Queries, userId: number) =>
  q
    .selectFrom('orders')
    .select(['id', 'processing_status'])
    .where('user_id', '=', userId)
    .where('processing_status', '<=', LAST_ACTIVE)
    .orderBy('id')
    .execute()

async function requireEmptyWallet(q: Queries, userId: number): Promise<void> {
  // In this order: a credit in between is counted twice rather than missed.
  const pending_cents = await openDeposits(q, userId)
  const balance_cents = await balanceOf(q, userId, 'wallet')
  if (balance_cents + pending_cents > 0)
    throw new ApiError('wallet_not_empty', undefined, { balance_cents, pending_cents })
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
  for (const { id } of await ordersOf(tx.q, userId)) {
    const order = (await lockOrder(tx, id))!
    if (order.processing_status !== OrderStatus.NEW)
      throw new Error(`order_in_progress: order ${id} of user ${userId} is not finished`)
    await removeCart(tx, context, order)
  }
  const owed = (await openDeposits(tx.q, userId)) + Math.abs(await balanceOf(tx.q, userId, 'wallet'))
  if (owed > 0) throw new Error(`wallet_not_empty: the wallet of user ${userId} is not empty`)
  const refund = await tx.q
    .selectFrom('refunds')
    .innerJoin('payments', 'payments.id', 'refunds.payment_id')
    .innerJoin('due_work', (join) =>
      join
        .on('due_work.kind', '=', 'money/refund')
        .on(sql<SqlBool>`due_work.subject = cast(refunds.id as text)`),
    )
    .select('refunds.id')
    .where('payments.user_id', '=', userId)
    .where('refunds.status', '<>', 'succeeded')
    .executeTakeFirst()
  if (refund) throw new Error(`refund ${refund.id} is owed to user ${userId}`)
  if (user.profile_image_key !== null)
    await removeLater(tx, user.profile_image_key, context.runtime.clock.now())
  await forgetCustomers(tx, context, userId)
  // The marks of the customer were stored with the contacts; they need the store's secret, which the command line lacks.
  await erase(tx, context, user)
  return { erasedAt: context.runtime.clock.now(), isNew: true }
}

const inProgress = (orderIds: number[]): ApiError =>
  new ApiError('order_in_progress', undefined, { order_ids: orderIds })

type UserRow = Pick<Selectable<Tables['users']>, 'id' | 'identity'>

async function erase(tx: Tx, context: CloudContext, { id: userId, identity }: UserRow): Promise<void> {
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
