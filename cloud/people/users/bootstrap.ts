import type { Selectable } from 'kysely'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { CloudContext } from '../../platform/context.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { provenBy, takeProven, takingUnique } from './contacts.ts'

type UserRow = Selectable<Tables['users']>

/** A caller's own details; claims that its token verifies take precedence. */
export interface UserDetails {
  phone_number?: string | undefined
  email?: string | undefined
  first_name?: string | undefined
  last_name?: string | undefined
  default_hub_id?: number | undefined
  /** The caller's device. */
  device_uuid?: string | undefined
}

export interface Bootstrapped {
  user: UserRow
  created: boolean
}

/**
 * Finds or creates the user of an identity. If a guest's identity is no longer anonymous, it keeps its user
 * and its orders. Throws `validation_error` without any contact, `hub_not_found` for the default hub.
 */
export async function bootstrapUser(
  context: CloudContext,
  caller: IdentityCredential,
  details: UserDetails,
): Promise<Bootstrapped> {
  const { clock } = context.runtime
  const { claims } = caller
  const proven = provenBy(claims)
  const contact = {
    email: proven.email ?? details.email ?? claims.email,
    phone_number: proven.phone_number ?? details.phone_number ?? null,
  }
  const device = details.device_uuid === undefined ? {} : { device_uuid: details.device_uuid }
  return takingUnique(context, async (tx) => {
    const known = await findUser(tx, caller.identity)
    const isGuestNoMore = known?.is_anonymous === 1 && !claims.anonymous
    if (known && !isGuestNoMore)
      return { user: await seenAgain(tx, context, known, caller, device), created: false }
    requireContact(contact)
    const hubId = details.default_hub_id
    // An app may have the number of a retired hub: that must not stop its customers.
    const isRetired = hubId !== undefined && (await requireHub(tx.q, hubId)).retired_at !== null
    const values = {
      ...contact,
      ...(await takeProven(tx, context, contact, proven, known?.id ?? null)),
      first_name: details.first_name ?? null,
      last_name: details.last_name ?? null,
      default_hub_id: isRetired ? null : (hubId ?? null),
      ...device,
    }
    if (!known) {
      const made = await insertUser(tx, clock.now(), caller, values)
      await rememberCustomer(tx, context, made.user)
      return made
    }
    const user = await tx.q
      .updateTable('users')
      .set({ ...values, is_anonymous: 0, updated_at: clock.now() })
      .where('id', '=', known.id)
      .returningAll()
      .executeTakeFirstOrThrow()
    await rememberCustomer(tx, context, user)
    return { user, created: false }
  })
}

/** The guest user of an anonymous identity. Throws `forbidden` for an identity that is not anonymous. */
export async function bootstrapGuest(
  { db, runtime }: CloudContext,
  caller: IdentityCredential,
): Promise<Bootstrapped> {
  if (!caller.claims.anonymous)
    throw new ApiError('forbidden', 'Only an anonymous identity can be a guest: use users/user/bootstrap.')
  return db.transact(async (tx) => {
    const user = await findUser(tx, caller.identity)
    return user ? { user, created: false } : insertUser(tx, runtime.clock.now(), caller, {})
  })
}

/**
 * Updates the device, which may have changed, and contacts that were verified since. The bootstrap changes
 * nothing else of a user.
 */
async function seenAgain(
  tx: Tx,
  context: CloudContext,
  user: UserRow,
  { claims }: IdentityCredential,
  device: { device_uuid?: string },
): Promise<UserRow> {
  const { email_verified, phone_verified } = await takeProven(tx, context, user, provenBy(claims), user.id)
  const seen = {
    ...device,
    ...(email_verified && { email_verified }),
    ...(phone_verified && { phone_verified }),
  }
  const isNew = Object.entries(seen).some(([name, value]) => user[name as keyof UserRow] !== value)
  if (!isNew) return user
  await tx.q.updateTable('users').set(seen).where('id', '=', user.id).execute()
  await rememberCustomer(tx, context, { ...user, ...seen })
  return { ...user, ...seen }
}

/**
 * Locks the user. A user under deletion has already lost the identity when the lock is free, so nothing is
 * written to it.
 */
const findUser = (tx: Tx, identity: string): Promise<UserRow | undefined> =>
  tx.forUpdate(tx.q.selectFrom('users').selectAll().where('identity', '=', identity)).executeTakeFirst()

/** Two simultaneous first requests make one user: the second waits at the unique index, and finds the row. */
async function insertUser(
  tx: Tx,
  now: number,
  caller: IdentityCredential,
  values: Partial<UserRow>,
): Promise<Bootstrapped> {
  const { identity, claims } = caller
  const inserted = await tx.q
    .insertInto('users')
    .values({
      ...values,
      identity,
      is_anonymous: claims.anonymous ? 1 : 0,
      created_at: now,
      updated_at: now,
    })
    .onConflict((conflict) => conflict.column('identity').doNothing())
    .returningAll()
    .executeTakeFirst()
  if (inserted) return { user: inserted, created: true }
  const other = await findUser(tx, identity)
  // The user may have been deleted in between.
  return other ? { user: other, created: false } : insertUser(tx, now, caller, values)
}

function requireContact(contact: { email: string | null; phone_number: string | null }): void {
  if (contact.email !== null || contact.phone_number !== null) return
  throw new ApiError('validation_error', 'An e-mail address or a phone number is required.', undefined, [
    {
      loc: ['body'],
      msg: 'Value error, at least one of phone_number and email is required',
      type: 'value_error',
    },
  ])
}

/** Throws `hub_not_found`. */
export async function requireHub(q: Queries, hubId: number): Promise<{ retired_at: number | null }> {
  const hub = await q.selectFrom('hubs').select('retired_at').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
  return hub
}
