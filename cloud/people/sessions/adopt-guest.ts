import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { moveLedger } from '../../commerce/ledger/move-ledger.ts'
import { moveMethods } from '../../commerce/methods/customers.ts'
import { moveOrders, type Joined } from '../../commerce/orders/move-orders.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { VerifiedIdentity } from '../../platform/credentials/identity-token.ts'
import { removeLater } from '../../platform/media/media.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { bootstrapUser } from '../users/bootstrap.ts'
import { takingUnique } from '../users/contacts.ts'
import { erase } from '../users/delete-user.ts'

/**
 * Passes everything of a guest to the person who signs in, in one transaction. A person without a user takes over the
 * guest's user. A person with a user gets the guest's orders, wallet, points, saved methods and devices. The guest's user
 * then ends with its sessions, so a repetition finds nothing to move. Throws `order_in_progress`.
 */
export async function adoptGuest(
  context: CloudContext,
  guest: VerifiedIdentity,
  person: IdentityCredential,
): Promise<void> {
  try {
    const isNew = await takingUnique(context, (tx) => adopt(tx, context, guest.identity, person.identity))
    if (isNew) await ignoringRefusal(() => bootstrapUser(context, person, {}))
  } catch (error) {
    if (!(error instanceof Outdated)) throw error
    await adoptGuest(context, guest, person)
  }
}

/** Another sign-in of the guest, or the deletion of the account, was faster: the transaction must begin again. */
class Outdated extends Error {}

/** Returns whether the person took over the guest's user. */
async function adopt(tx: Tx, context: CloudContext, guest: string, person: string): Promise<boolean> {
  const from = await userOf(tx.q, guest)
  if (!from) return false
  const to = await userOf(tx.q, person)
  if (to) {
    await joinUsers(tx, context, { from: from.id, to: to.id }, guest)
    return false
  }
  await tx.q
    .updateTable('users')
    .set({ identity: person })
    .where('id', '=', from.id)
    .where('identity', '=', guest)
    .execute()
  return true
}

const userOf = (q: Queries, identity: string): Promise<{ id: number } | undefined> =>
  q.selectFrom('users').select('id').where('identity', '=', identity).executeTakeFirst()

/** Locks in the order of all other transactions: orders, users, money. */
async function joinUsers(tx: Tx, context: CloudContext, users: Joined, identity: string): Promise<void> {
  const { from, to } = users
  if (from === to) throw new Outdated()
  await moveOrders(tx, context, users)
  const rows = await tx
    .forUpdate(tx.q.selectFrom('users').selectAll().where('id', 'in', [from, to]).orderBy('id'))
    .execute()
  const [guest, account] = [from, to].map((id) => rows.find((user) => user.id === id)!)
  if (guest!.identity !== identity || account!.deleted_at !== null) throw new Outdated()
  await moveLedger(tx, context, users)
  await moveMethods(tx, context, users)
  await rememberCustomer(tx, context, { ...guest!, id: to })
  await moveDevices(tx, users)
  if (guest!.profile_image_key !== null)
    await removeLater(tx, guest!.profile_image_key, context.runtime.clock.now())
  await erase(tx, context, guest!)
}

/** Moves the devices that get notices. The account's own registration of a device stays. */
async function moveDevices(tx: Tx, { from, to }: Joined): Promise<void> {
  const known = tx.q.selectFrom('push_configs').select('device_id').where('user_id', '=', to)
  await tx.q
    .updateTable('push_configs')
    .set({ user_id: to })
    .where('user_id', '=', from)
    .where('device_id', 'not in', known)
    .execute()
}

async function ignoringRefusal(work: () => Promise<unknown>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
  }
}
