import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import { isUniqueViolation, type Queries } from '../../platform/store/database.ts'
import type { UserRow } from './profile.ts'

/**
 * Stores another identity on the caller's user (C §4.3). The user is the caller's where its identity is, or where it has
 * none and the caller's token verifies the contact. Throws `invalid_token` and `token_expired` of the new identity's token,
 * `user_not_found`, `forbidden`.
 */
export async function setIdentity(
  { db, runtime }: CloudContext,
  verify: VerifyIdentity,
  caller: IdentityCredential,
  { contact, token }: { contact: Contact; token: string },
): Promise<void> {
  const { identity, claims } = await verify(token)
  const named = await usersWith(db.kysely, contact)
  if (named.length === 0) throw new ApiError('user_not_found')
  const own = named.find((user) => user.identity === caller.identity) ?? named.find((user) => mayClaim(user))
  if (!own) throw new ApiError('forbidden', 'The caller is not the user that the contact names.')
  if (claims.anonymous && own.is_anonymous === 0)
    throw new ApiError('forbidden', "A guest's identity cannot become a registered user's.")
  if (own.identity === identity) return
  try {
    const updated = await db.kysely
      .updateTable('users')
      .set({ identity, is_anonymous: claims.anonymous ? 1 : 0, updated_at: runtime.clock.now() })
      .where('id', '=', own.id)
      .where('identity', 'is not distinct from', own.identity)
      .executeTakeFirst()
    if (updated.numUpdatedRows !== 1n) throw new ApiError('forbidden', 'The user has changed meanwhile.')
  } catch (error) {
    if (isUniqueViolation(error)) throw new ApiError('forbidden', 'This identity has another user.')
    throw error
  }

  function mayClaim(user: UserRow): boolean {
    if (user.identity !== null || caller.claims.anonymous) return false
    return 'email' in contact
      ? caller.claims.emailVerified && caller.claims.email === contact.email
      : caller.claims.phoneNumber === contact.phone_number
  }
}

/** One of the two ways in which a person is reached. An e-mail address is in small letters. */
type Contact = { phone_number: string } | { email: string }

/** Everybody with a contact, who registered with it before a guest: contacts are not unique. */
export function usersWith(q: Queries, contact: Contact): Promise<UserRow[]> {
  const users = q.selectFrom('users').selectAll().orderBy('is_anonymous').orderBy('id').limit(100)
  return (
    'email' in contact
      ? users.where('email', '=', contact.email)
      : users.where('phone_number', '=', contact.phone_number)
  ).execute()
}
