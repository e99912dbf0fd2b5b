import type { VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import { type Queries, isUniqueViolation } from '../../platform/store/database.ts'
import type { CommerceServices } from '../../commerce/services.ts'
import { bootstrapGuest, bootstrapUser } from './bootstrap.ts'
import { deleteUser } from './delete-user.ts'
import { verifiedUserWith, provenBy, type Contact } from './contacts.ts'
import { currentHub, readUser, viewUser, type UserRow } from './profile.ts'
import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import { forgetActor } from './forget-actor.ts'

type UserRoutes =
  | 'consumer.users.get'
  | 'consumer.users.create'
  | 'consumer.users.bootstrap'
  | 'consumer.users.bootstrap_guest'
  | 'consumer.users.exists'
  | 'consumer.users.phone_exists'
  | 'consumer.users.email_exists'
  | 'consumer.users.set_identity'

/** C §4.3: accounts. */
export function userHandlers(
  context: CloudContext,
  verifyIdentity: VerifyIdentity,
  media: Media,
): Handlers<UserRoutes> {
  const q = context.db.kysely
  const addressOf = (key: string): string => media.addressOf(key)
  return {
    async 'consumer.users.get'({ credential }) {
      const user = await readUser(q, credential.userId)
      return { ...viewUser(user, addressOf), hub: await currentHub(q, user) }
    },
    async 'consumer.users.create'({ credential, body }) {
      const { user, created } = await bootstrapUser(context, credential, body)
      return reply(viewUser(user, addressOf), { status: created ? 201 : 200 })
    },
    async 'consumer.users.bootstrap'({ credential, body }) {
      return viewUser((await bootstrapUser(context, credential, body)).user, addressOf)
    },
    async 'consumer.users.bootstrap_guest'({ credential }) {
      return viewUser((await bootstrapGuest(context, credential)).user, addressOf)
    },
    async 'consumer.users.exists'({ credential, query }) {
      const user = await verifiedUserWith(q, query)
      const exists = user !== undefined
      return (await isRegistered(q, credential.identity)) ? { exists, user_id: user?.id ?? null } : { exists }
    },
    async 'consumer.users.phone_exists'({ query }) {
      return { exists: (await verifiedUserWith(q, query)) !== undefined }
    },
    async 'consumer.users.email_exists'({ query }) {
      return { exists: (await verifiedUserWith(q, query)) !== undefined }
    },
    async 'consumer.users.set_identity'({ credential, body }) {
      const { phone_number, email, identity_token } = body
      const contact = email === undefined ? { phone_number: phone_number! } : { email }
      await setIdentity(context, verifyIdentity, credential, { contact, token: identity_token })
      return { message: 'The identity was stored.' }
    },
  }
}

/** A person can have any number of anonymous identities. */
async function isRegistered(q: Queries, identity: string): Promise<boolean> {
  const user = await q
    .selectFrom('users')
    .select('is_anonymous')
    .where('identity', '=', identity)
    .executeTakeFirst()
  return user?.is_anonymous === 0
}

/** Deletes an account. */
export const accountHandlers = (
  services: CommerceServices,
  media: Media,
): Handlers<'consumer.users.delete'> => ({
  async 'consumer.users.delete'({ credential, query }) {
    await deleteUser(services, media, credential, query)
  },
})

/**
 * Stores another identity on the caller's user (C §4.3). The user is the caller's if the caller's identity
 * matches. If the user has no identity, the caller's token must verify the contact. Throws `invalid_token`
 * and `token_expired` for the new identity's token, `user_not_found`, `forbidden`.
 */
export async function setIdentity(
  context: CloudContext,
  verify: VerifyIdentity,
  caller: IdentityCredential,
  { contact, token }: { contact: Contact; token: string },
): Promise<void> {
  const { db, runtime } = context
  const { identity, claims } = await verify(token)
  const own = await ownUser(db.kysely, contact, caller)
  if (claims.anonymous && own.is_anonymous === 0)
    throw new ApiError('forbidden', "A guest's identity cannot become a registered user's.")
  if (own.identity === identity) return
  try {
    await db.transact(async (tx) => {
      await rememberCustomer(tx, context, own)
      const updated = await tx.q
        .updateTable('users')
        .set({ identity, is_anonymous: claims.anonymous ? 1 : 0, updated_at: runtime.clock.now() })
        .where('id', '=', own.id)
        .where('identity', 'is not distinct from', own.identity)
        .returningAll()
        .executeTakeFirst()
      if (!updated) throw new ApiError('forbidden', 'The user has changed during the call.')
      await rememberCustomer(tx, context, updated)
      if (own.identity !== null) await forgetActor(tx, own.identity, own.id)
    })
  } catch (error) {
    if (isUniqueViolation(error)) throw new ApiError('forbidden', 'This identity has another user.')
    throw error
  }
}

/** Finds the user with a contact, if it is the caller. Throws `user_not_found`, `forbidden`. */
async function ownUser(q: Queries, contact: Contact, caller: IdentityCredential): Promise<UserRow> {
  const { identity, claims } = caller
  const users = q.selectFrom('users').selectAll().orderBy('is_anonymous').orderBy('id')
  const withContact =
    'email' in contact
      ? users.where('email', '=', contact.email)
      : users.where('phone_number', '=', contact.phone_number)
  const own = await withContact.where('identity', '=', identity).executeTakeFirst()
  if (own) return own
  const unclaimed = await withContact.where('identity', 'is', null).executeTakeFirst()
  if (unclaimed && !claims.anonymous && isProven(contact, claims)) return unclaimed
  // An unverified contact does not identify a user.
  if (!unclaimed && !(await verifiedUserWith(q, contact))) throw new ApiError('user_not_found')
  throw new ApiError('forbidden', 'The caller is not the user that the contact names.')
}

function isProven(contact: Contact, claims: IdentityCredential['claims']): boolean {
  const { email, phone_number } = provenBy(claims)
  return 'email' in contact ? contact.email === email : contact.phone_number === phone_number
}
