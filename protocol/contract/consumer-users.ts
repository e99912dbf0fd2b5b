import { z } from 'zod'
import {
  Id,
  UserId,
  CreatedAt,
  UpdatedAt,
  Message,
  PhoneNumber,
  PhoneInQuery,
  Email,
  EmailInQuery,
  PersonName,
} from './fields.ts'
import { HubSummary } from './owner-hubs.ts'
import { defineRoutes } from './route.ts'

/**
 * A contact is verified if a token proved it; then only this user has it. Any other contact is as the user entered it.
 */
export const ShownContacts = {
  email: z.string().nullable().describe('E-mail address in small letters; null if there is none.'),
  email_verified: z
    .boolean()
    .describe('True if a token has proved the e-mail address: it belongs to this user only.'),
  phone_number: z.string().nullable().describe('Phone number in E.164; null if there is none.'),
  phone_verified: z
    .boolean()
    .describe('True if a token has proved the phone number: it belongs to this user only.'),
}

/** Fields that the contract marks with `?` are always present here; null if there is no value. */
export const User = z
  .object({
    user_id: UserId,
    identity_id: z.string().nullable().describe('`sub` of the identity; null if there is none.'),
    is_anonymous: z.boolean().describe('True for a guest.'),
    ...ShownContacts,
    first_name: z.string().nullable().describe('First name; null if it is unknown.'),
    last_name: z.string().nullable().describe('Last name; null if it is unknown.'),
    profile_image_url: z
      .string()
      .nullable()
      .describe('Signed address of the profile image, which expires; null if there is none.'),
    selected_hub_id: Id.nullable().describe('Number of the selected hub; null if none is selected.'),
    default_hub_id: Id.nullable().describe('Number of the default hub; null if there is none.'),
    created_at: CreatedAt,
    updated_at: UpdatedAt,
  })
  .meta({ id: 'User', description: 'A customer.' })
export type User = z.infer<typeof User>

export const UserWithHub = User.extend({
  hub: HubSummary.nullable().describe('Selected hub, else the default hub; null if there is neither.'),
}).meta({ id: 'UserWithHub', description: 'A user with the selected hub.' })
export type UserWithHub = z.infer<typeof UserWithHub>

export const UserExists = z
  .object({ exists: z.boolean().describe('True if a user has the contact and has verified it.') })
  .meta({ id: 'UserExists', description: 'Result of a check for a user.' })

const PhoneQuery = z.object({
  phone_number: PhoneInQuery.describe(
    'Phone number in E.164, such as `+15550100000`. A plus sign in a query is written `%2B`.',
  ),
})

const contacts = {
  phone_number: PhoneNumber.optional().describe(
    'Phone number in E.164, such as `+15550100000`. If it is left out: the number of the token, if there is one.',
  ),
  email: Email.optional().describe(
    'E-mail address. If it is left out: the address of the token, if there is one.',
  ),
  first_name: PersonName.optional().describe('First name. If it is left out: unknown.'),
  last_name: PersonName.optional().describe('Last name. If it is left out: unknown.'),
}
const byWhomever =
  'At least one contact is needed, in the body or in the token. Verified contacts of the token (`phone_number`, and `email` with `email_verified`) replace those of the body. A verified contact belongs to one user: the one who proved it last. Another user keeps it unverified.'
const onlyVerified = 'Only verified contacts count.'

/** C §4.3: accounts. */
export const consumerUserRoutes = defineRoutes(
  { interface: 'consumer', auth: { kind: 'identity' }, rate: 'standard', tag: 'Users' },
  {
    'consumer.users.get': {
      at: 'GET /users/user',
      auth: { kind: 'user' },
      response: UserWithHub,
      summary: 'Read the user with the selected hub, or the default hub',
      description:
        'The user of the token. An identity without a user is 404 `user_not_found`: call `bootstrap` once.',
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
      description: `${byWhomever} 200: the user already existed.`,
      examples: { body: { email: 'ada@example.org', first_name: 'Ada' } },
    },
    'consumer.users.delete': {
      at: 'DELETE /users/user',
      auth: { kind: 'user' },
      query: z.object({
        forfeit: z
          .boolean()
          .default(false)
          .describe('True forfeits the money in the wallet and in open deposits.'),
      }),
      status: 204,
      response: z.undefined(),
      errors: ['order_in_progress', 'wallet_not_empty', 'processor_unavailable'],
      summary: 'Delete the user',
      description:
        'Erases all personal data and frees the identity, which can be bootstrapped again. Carts are deleted, and a payment in progress is cancelled. A paid order must have ended first (409 `order_in_progress`). Orders, payments and wallet entries stay in the books without a name. If the wallet holds money, or a deposit may still succeed, the answer is 409 `wallet_not_empty` (`details.balance_cents`, `pending_cents`), unless `forfeit` is true. The same holds for a refund that the processor has refused (`owed_refund_cents`), and for a debt of a deposit that its bank took back (`debt_cents`).',
    },
    'consumer.users.bootstrap': {
      at: 'POST /users/user/bootstrap',
      makesGuests: true,
      body: z.object({
        ...contacts,
        default_hub_id: Id.optional().describe(
          'Number of the default hub. A retired hub counts as none. If it is left out: none.',
        ),
        device_uuid: z
          .string()
          .min(1)
          .max(255)
          .optional()
          .describe(
            'UUID of the device, which counts for the limits of deals. If it is left out: deals do not count the device.',
          ),
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
      response: z
        .object({
          exists: z.boolean().describe('True if a user has the contact and has verified it.'),
          user_id: Id.nullable()
            .optional()
            .describe(
              'Number of that user, or null if there is none; absent if the caller is a guest or has no user.',
            ),
        })
        .meta({ id: 'UserExistsWithId', description: 'Result of a search for a user.' }),
      alsoRate: 'lookup',
      summary: 'Find the user who has a phone number',
      description: `${onlyVerified} For guests and identities without a user, \`user_id\` is absent.`,
    },
    'consumer.users.phone_exists': {
      at: 'GET /users/user/exists/phone',
      auth: { kind: 'none' },
      rate: 'lookup',
      query: PhoneQuery,
      response: UserExists,
      summary: 'Check whether a user has a phone number',
      description: onlyVerified,
    },
    'consumer.users.email_exists': {
      at: 'GET /users/user/exists/email',
      auth: { kind: 'none' },
      rate: 'lookup',
      query: z.object({
        email: EmailInQuery.describe('E-mail address, in any case. A plus sign in a query is written `%2B`.'),
      }),
      response: UserExists,
      summary: 'Check whether a user has an e-mail address',
      description: onlyVerified,
    },
    'consumer.users.set_identity': {
      at: 'PUT /users/user/identity-id',
      body: z
        .strictObject({
          phone_number: PhoneNumber.optional().describe(
            'Phone number of the user in E.164. It or `email` names the user.',
          ),
          email: Email.optional().describe(
            'E-mail address of the user. It or `phone_number` names the user.',
          ),
          identity_token: z.string().min(1).max(16_384).describe('Identity token of the new identity.'),
        })
        .meta({ oneOf: [{ required: ['phone_number'] }, { required: ['email'] }] })
        .refine(({ phone_number, email }) => (phone_number === undefined) !== (email === undefined), {
          message: 'exactly one of phone_number and email is required',
        }),
      response: z.object({ message: Message }),
      errors: ['forbidden', 'user_not_found'],
      // It tells whether a contact is anybody's, too.
      alsoRate: 'lookup',
      summary: 'Give the user another identity',
      description:
        'The contact names the user, who must be the caller. `identity_token` proves the new identity; the former identity has no user afterwards. If the new identity is a guest, or has a user of its own, the answer is 403 `forbidden`.',
      examples: { body: { email: 'ada@example.org', identity_token: 'eyJhbGciOiJFUzI1NiJ9…' } },
    },
  },
)
