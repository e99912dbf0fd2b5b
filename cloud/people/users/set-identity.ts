import { rememberCustomer } from '../../commerce/deals/customers.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import { isUniqueViolation, type Queries } from '../../platform/store/database.ts'
import { forgetActor } from './forget-actor.ts'
import { provenBy, verifiedUserWith, type Contact } from './contacts.ts'
import type { UserRow } from './profile.ts'

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
