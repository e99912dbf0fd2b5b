import type { Selectable } from 'kysely'
import type { IdentityCredential } from '../credentials/credential.ts'
import type { CloudContext } from '../context.ts'
import { ApiError } from '../http/api-error.ts'
import type { Tx } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'

type UserRow = Selectable<Tables['users']>

/** What a caller says of itself; what its token verifies wins over it (contract §10). */
export interface UserDetails {
  phone_number?: string | undefined
  email?: string | undefined
  first_name?: string | undefined
  last_name?: string | undefined
  default_hub_id?: number | undefined
}

type Context = Pick<CloudContext, 'db' | 'runtime'>

/**
 * The user of an identity, created where there is none. An identity that was a guest's and is not anonymous any more keeps
 * its user, and with it its orders. Throws `validation_error` without any contact, `hub_not_found`.
 */
export async function bootstrapUser(
  { db, runtime }: Context,
  caller: IdentityCredential,
  details: UserDetails,
): Promise<UserRow> {
  const { claims } = caller
  const contact = {
    email: (claims.emailVerified ? claims.email : null) ?? details.email ?? claims.email,
    phone_number: claims.phoneNumber ?? details.phone_number ?? null,
  }
  return db.transact(async (tx) => {
    const known = await findUser(tx, caller.identity)
    const isGuestNoMore = known?.is_anonymous === 1 && !claims.anonymous
    if (known && !isGuestNoMore) return known
    requireContact(contact)
    if (details.default_hub_id !== undefined) await requireHubExists(tx, details.default_hub_id)
    const values = {
      ...contact,
      first_name: details.first_name ?? null,
      last_name: details.last_name ?? null,
      default_hub_id: details.default_hub_id ?? null,
    }
    if (!known) return insertUser(tx, runtime.clock.now(), caller, values)
    return tx.q
      .updateTable('users')
      .set({ ...values, is_anonymous: 0, updated_at: runtime.clock.now() })
      .where('id', '=', known.id)
      .returningAll()
      .executeTakeFirstOrThrow()
  })
}

/** The guest user of an anonymous identity. Throws `forbidden` for an identity that is not anonymous. */
export async function bootstrapGuest({ db, runtime }: Context, caller: IdentityCredential): Promise<UserRow> {
  if (!caller.claims.anonymous)
    throw new ApiError('forbidden', 'Only an anonymous identity can be a guest: use users/user/bootstrap.')
  return db.transact(async (tx) => {
    const known = await findUser(tx, caller.identity)
    return (
      known ??
      insertUser(tx, runtime.clock.now(), caller, {
        email: null,
        phone_number: null,
        first_name: null,
        last_name: null,
        default_hub_id: null,
      })
    )
  })
}

const findUser = ({ q }: Tx, identity: string): Promise<UserRow | undefined> =>
  q.selectFrom('users').selectAll().where('identity', '=', identity).executeTakeFirst()

/** Two first requests at once make one user: the second waits for the first at the unique index, and finds its row. */
async function insertUser(
  tx: Tx,
  now: number,
  { identity, claims }: IdentityCredential,
  values: Pick<UserRow, 'email' | 'phone_number' | 'first_name' | 'last_name' | 'default_hub_id'>,
): Promise<UserRow> {
  const inserted = await tx.q
    .insertInto('users')
    .values({
      ...values,
      identity,
      is_anonymous: claims.anonymous ? 1 : 0,
      profile_image_url: null,
      selected_hub_id: null,
      created_at: now,
      updated_at: now,
    })
    .onConflict((conflict) => conflict.column('identity').doNothing())
    .returningAll()
    .executeTakeFirst()
  return inserted ?? (await findUser(tx, identity))!
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

async function requireHubExists({ q }: Tx, hubId: number): Promise<void> {
  const hub = await q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
}
