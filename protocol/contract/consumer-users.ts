import { z } from 'zod'
import { Email, Id, PhoneNumber, Timestamp } from './fields.ts'
import { HubSummary } from './hub-objects.ts'
import { defineRoutes } from './route.ts'

/** Contract §9. What the contract marks with `?` is always present here, and null where there is nothing to say. */
export const User = z
  .object({
    user_id: Id,
    identity_id: z.string().nullable(),
    is_anonymous: z.boolean(),
    email: z.string().nullable(),
    phone_number: z.string().nullable(),
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

const Name = z.string().trim().min(1).max(100)
const common = { interface: 'consumer', rate: 'standard', tag: 'Users' } as const

/** C §4.3. */
export const consumerUserRoutes = defineRoutes({
  'consumer.users.get': {
    ...common,
    method: 'GET',
    path: '/users/user',
    auth: { kind: 'user' },
    response: UserWithHub,
    summary: 'The user, with the hub selected (or the default hub)',
  },
  'consumer.users.bootstrap': {
    ...common,
    method: 'POST',
    path: '/users/user/bootstrap',
    auth: { kind: 'identity' },
    body: z.object({
      phone_number: PhoneNumber.optional(),
      email: Email.optional(),
      first_name: Name.optional(),
      last_name: Name.optional(),
      default_hub_id: Id.optional(),
      device_uuid: z.string().min(1).max(255).optional(),
    }),
    bodyOptional: true,
    status: 201,
    response: User,
    errors: ['hub_not_found'],
    summary: 'Create the user of an identity, or return the existing one',
    description:
      'At least one contact is needed, in the body or in the token. What the token verifies wins over what the body says.',
    examples: { body: { email: 'ada@example.org', first_name: 'Ada' } },
  },
  'consumer.users.bootstrap_guest': {
    ...common,
    method: 'POST',
    path: '/users/user/bootstrap/guest',
    auth: { kind: 'identity' },
    status: 201,
    response: User,
    errors: ['forbidden'],
    summary: 'Create the guest user of an anonymous identity, or return the existing one',
  },
})
