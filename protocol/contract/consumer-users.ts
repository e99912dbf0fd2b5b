import { z } from 'zod'
import { Email, EmailInQuery, Id, PersonName, PhoneInQuery, PhoneNumber, Timestamp } from './fields.ts'
import { HubSummary } from './owner-hubs.ts'
import { defineRoutes } from './route.ts'

/** A contact is verified where a token has proved it: then it is of this user alone. Any other is as the user says. */
export const ShownContacts = {
  email: z.string().nullable(),
  email_verified: z.boolean(),
  phone_number: z.string().nullable(),
  phone_verified: z.boolean(),
}

/** What the contract marks with `?` is always present here, and null where there is nothing to say. */
export const User = z
  .object({
    user_id: Id,
    identity_id: z.string().nullable(),
    is_anonymous: z.boolean(),
    ...ShownContacts,
    first_name: z.string().nullable(),
    last_name: z.string().nullable(),
    profile_image_url: z.string().nullable(),
    selected_hub_id: Id.nullable(),
    default_hub_id: Id.nullable(),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'User' })
export type User = z.infer<typeof User>

export const UserWithHub = User.extend({ hub: HubSummary.nullable() }).meta({ id: 'UserWithHub' })
export type UserWithHub = z.infer<typeof UserWithHub>

export const UserExists = z.object({ exists: z.boolean() }).meta({ id: 'UserExists' })

const PhoneQuery = z.object({ phone_number: PhoneInQuery })

const contacts = {
  phone_number: PhoneNumber.optional(),
  email: Email.optional(),
  first_name: PersonName.optional(),
  last_name: PersonName.optional(),
}
const byWhomever =
  'At least one contact is needed, in the body or in the token. What the token verifies (`phone_number`, and `email` with `email_verified`) wins over what the body says. A verified contact is of one user: the one who proved it last; another user keeps it as one that is not verified.'
const onlyVerified = 'Only contacts that are verified count.'

/** C §4.3: accounts. */
export const consumerUserRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'identity' }, rate: 'standard', tag: 'Users' },
  {
    'consumer.users.get': {
      at: 'GET /users/user',
      auth: { kind: 'user' },
      response: UserWithHub,
      summary: 'The user, with the hub selected (or the default hub)',
    },
    'consumer.users.create': {
      at: 'POST /users/user',
      makesGuests: true,
      body: z.object(contacts),
      bodyOptional: true,
      ignoresUnknown: true,
      status: 201,
      alsoStatus: 200,
      response: User,
      deprecated: { since: '2026-11-01', sunset: '2027-11-01' },
      summary: 'Create the user of an identity; use bootstrap instead',
      description: `${byWhomever} 200: there was one already.`,
      examples: { body: { email: 'ada@example.org', first_name: 'Ada' } },
    },
    'consumer.users.delete': {
      at: 'DELETE /users/user',
      auth: { kind: 'user' },
      query: z.object({
        /** What is in the wallet, and what deposits may still bring, is given up. */
        forfeit: z.boolean().default(false),
      }),
      status: 204,
      response: z.undefined(),
      errors: ['order_in_progress', 'wallet_not_empty', 'processor_unavailable'],
      summary: 'Delete the user',
      description:
        'Erases everything personal and frees the identity, which can be bootstrapped anew. Carts go, and a payment that is under way is cancelled; a paid order must have ended first. The books stay: orders, payments and the wallet of a user without a name. A wallet with money in it, or with a deposit that may still succeed, is `wallet_not_empty` (`details.balance_cents`, `pending_cents`) unless `forfeit` is true.',
    },
    'consumer.users.bootstrap': {
      at: 'POST /users/user/bootstrap',
      makesGuests: true,
      body: z.object({
        ...contacts,
        default_hub_id: Id.optional(),
        device_uuid: z.string().min(1).max(255).optional(),
      }),
      bodyOptional: true,
      ignoresUnknown: true,
      status: 201,
      response: User,
      errors: ['hub_not_found'],
      summary: 'Create the user of an identity, or return the existing one',
      description: byWhomever,
      examples: { body: { email: 'ada@example.org', first_name: 'Ada' } },
    },
    'consumer.users.bootstrap_guest': {
      at: 'POST /users/user/bootstrap/guest',
      alsoRate: 'guest',
      ignoresUnknown: true,
      status: 201,
      response: User,
      errors: ['forbidden'],
      summary: 'Create the guest user of an anonymous identity, or return the existing one',
      description:
        'At most 20 calls a minute from one network (IPv4 /32, IPv6 /64), together with `users/user/bootstrap` for anonymous identities. A guest without any order is deleted after 30 days.',
    },
    'consumer.users.exists': {
      at: 'GET /users/user/exists',
      query: PhoneQuery,
      response: z.object({ exists: z.boolean(), user_id: Id.nullable() }).meta({ id: 'UserExistsWithId' }),
      alsoRate: 'lookup',
      summary: 'Whether a user has a phone number, and which',
      description: `${onlyVerified} Guests, and identities without a user, are not told which user it is.`,
    },
    'consumer.users.phone_exists': {
      at: 'GET /users/user/exists/phone',
      auth: { kind: 'none' },
      rate: 'lookup',
      query: PhoneQuery,
      response: UserExists,
      summary: 'Whether a user has a phone number',
      description: onlyVerified,
    },
    'consumer.users.email_exists': {
      at: 'GET /users/user/exists/email',
      auth: { kind: 'none' },
      rate: 'lookup',
      query: z.object({ email: EmailInQuery }),
      response: UserExists,
      summary: 'Whether a user has an e-mail address',
      description: onlyVerified,
    },
    'consumer.users.set_identity': {
      at: 'PUT /users/user/identity-id',
      body: z
        .strictObject({
          phone_number: PhoneNumber.optional(),
          email: Email.optional(),
          identity_token: z.string().min(1).max(16_384),
        })
        .meta({ oneOf: [{ required: ['phone_number'] }, { required: ['email'] }] })
        .refine(({ phone_number, email }) => (phone_number === undefined) !== (email === undefined), {
          message: 'exactly one of phone_number and email is required',
        }),
      response: z.object({ message: z.string() }),
      errors: ['forbidden', 'user_not_found'],
      // It tells whether a contact is anybody's, too.
      alsoRate: 'lookup',
      summary: "Make another identity the user's",
      description:
        'The user is named by a contact and must be the caller; `identity_token` proves the new identity, by which alone the user is reached from then on. `forbidden` too where that identity is a guest or has a user of its own.',
      examples: { body: { email: 'ada@example.org', identity_token: 'eyJhbGciOiJFUzI1NiJ9…' } },
    },
  },
)
