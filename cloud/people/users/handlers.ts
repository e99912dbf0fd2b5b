import type { VerifyIdentity } from '../../platform/credentials/identity-token.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reply, type Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { CommerceServices } from '../../commerce/services.ts'
import { bootstrapGuest, bootstrapUser } from './bootstrap.ts'
import { deleteUser } from './delete-user.ts'
import { verifiedUserWith } from './contacts.ts'
import { setIdentity } from './set-identity.ts'
import { currentHub, readUser, viewUser } from './profile.ts'

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
      const mayKnow = user !== undefined && (await isRegistered(q, credential.identity))
      return { exists: user !== undefined, user_id: mayKnow ? user.id : null }
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
