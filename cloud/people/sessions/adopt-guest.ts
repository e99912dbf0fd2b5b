import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { transferOrder } from '../../commerce/orders/transfer-order.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { VerifiedIdentity } from '../../platform/credentials/identity-token.ts'
import { bootstrapUser } from '../users/bootstrap.ts'

/**
 * Passes a guest's orders to the person who signs in. A person without a user takes over the guest's user with all of
 * its orders. A person with a user gets the open carts. A cart that cannot be moved stays with the guest.
 */
export async function adoptGuest(
  context: CloudContext,
  guest: VerifiedIdentity,
  person: IdentityCredential,
): Promise<void> {
  const { db } = context
  const guestUser = await userOf(context, guest.identity)
  if (!guestUser) return
  const known = await userOf(context, person.identity)
  if (!known) {
    await db.kysely
      .updateTable('users')
      .set({ identity: person.identity })
      .where('id', '=', guestUser.id)
      .execute()
    return ignoringRefusal(() => bootstrapUser(context, person, {}))
  }
  const carts = await db.kysely
    .selectFrom('orders')
    .select('id')
    .where('user_id', '=', guestUser.id)
    .where('processing_status', '=', OrderStatus.NEW)
    .where('merged_into', 'is', null)
    .execute()
  for (const { id: orderId } of carts) {
    const transfer = { userId: known.id, anonymousUserId: guestUser.id, orderId, anonymousToken: '' }
    await ignoringRefusal(() => transferOrder(context, () => Promise.resolve(guest), transfer))
  }
}

const userOf = ({ db }: CloudContext, identity: string): Promise<{ id: number } | undefined> =>
  db.kysely.selectFrom('users').select('id').where('identity', '=', identity).executeTakeFirst()

async function ignoringRefusal(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  }
}
