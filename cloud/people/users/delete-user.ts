import { isInProgress } from '../../../protocol/model/order-status.ts'
import type { UserCredential } from '../../platform/credentials/credential.ts'
import { endSessionsOf } from '../../platform/credentials/sessions.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { discardOrder } from '../../commerce/fulfilment/delete-order.ts'
import { LAST_ACTIVE } from '../../commerce/orders/order-rows.ts'
import type { Media } from '../../platform/media/media.ts'
import { forgetCustomers, removeCustomers } from '../../commerce/methods/customers.ts'
import { openDeposits } from '../../commerce/ledger/deposit.ts'
import { balanceOf } from '../../commerce/ledger/ledger.ts'
import type { CommerceServices } from '../../commerce/services.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
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
    await erase(tx, context, caller)
  })
  context.checkpoint('user.after-erase')
  await removeCustomers(services, caller.userId)
}

/** Oldest first. Throws `order_in_progress` if a hub must end any of them. */
async function activeOrders(q: Queries, userId: number): Promise<{ id: number }[]> {
  const active = await q
    .selectFrom('orders')
    .select(['id', 'processing_status'])
    .where('user_id', '=', userId)
    .where('processing_status', '<=', LAST_ACTIVE)
    .orderBy('id')
    .execute()
  const held = active.filter((order) => isInProgress(order.processing_status))
  if (held.length > 0) throw inProgress(held.map(({ id }) => id))
  return active
}

async function requireEmptyWallet(q: Queries, userId: number): Promise<void> {
  // In this order: a credit in between is counted twice rather than missed.
  const pending_cents = await openDeposits(q, userId)
  const balance_cents = await balanceOf(q, userId, 'wallet')
  if (balance_cents + pending_cents > 0)
    throw new ApiError('wallet_not_empty', undefined, { balance_cents, pending_cents })
}

const inProgress = (orderIds: number[]): ApiError =>
  new ApiError('order_in_progress', undefined, { order_ids: orderIds })

async function erase(tx: Tx, context: CloudContext, { userId, actor }: UserCredential): Promise<void> {
  const now = context.runtime.clock.now()
  const user = await tx.q.selectFrom('users').selectAll().where('id', '=', userId).executeTakeFirstOrThrow()
  await rememberCustomer(tx, context, user)
  await tx.q
    .updateTable('deal_redemptions')
    .set({ device_uuid: null })
    .where('user_id', '=', userId)
    .where('device_uuid', 'is not', null)
    .execute()
  await tx.q.deleteFrom('push_configs').where('user_id', '=', userId).execute()
  if (user.identity !== null) {
    await endSessionsOf(tx.q, user.identity)
    await forgetActor(tx, user.identity, userId)
  }
  // Stored answers name the caller, and a later user of the same identity must not get them.
  await tx.q.deleteFrom('idempotency_keys').where('credential', '=', actor).execute()
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
