import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { namedEnum, valuesIn } from '../model/named-enum.ts'
import { scopes, type RoleName, type Scope } from '../model/scopes.ts'
import { CreatedAt, Id, Identity, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** People with a role on an owner's hubs, and the owner's API keys. */

const RoleOfPerson = namedEnum('OwnerRole', 'What the person may do at the hubs.', {
  owner: 'everything.',
  technician: 'read and control hubs, and file maintenance reports; no sales, no refunds.',
  analyst: 'read everything, change nothing.',
} satisfies Record<RoleName, string>)

const HubSelection = z
  .union([z.literal('*'), z.array(Id)])
  .meta({ id: 'HubSelection', description: 'Numbers of hubs, or `*` for all hubs.' })
const HubIds = z.array(Id).min(1).max(1000)
const scopeMeanings = scopes.map((scope): [Scope, string] => {
  const [area, access] = scope.split(':')
  return [scope, `${access === 'read' ? 'read' : 'change'} what belongs to ${area}.`]
})
const GrantedScope = z
  .enum(scopes)
  .meta({ id: 'KeyScope', description: valuesIn('A right of an API key.', new Map(scopeMeanings)) })

const Person = z
  .object({
    id: Id.describe('Number of the role.'),
    identity: z.string().describe('Identity of the person at the identity provider (`sub`).'),
    role: RoleOfPerson,
    hubs: HubSelection.describe('Hubs at which the person has the role.'),
    created_at: CreatedAt,
    name: z
      .string()
      .nullable()
      .describe('Name of a person who signs in with a passkey of this service; null for other people.'),
  })
  .meta({ id: 'Person', description: 'A role of a person at hubs.' })
export type Person = z.infer<typeof Person>

const Invitation = z
  .object({
    id: Id.describe('Number of the invitation.'),
    name: z.string().describe('Name of the invited person.'),
    email: z.string().nullable().describe('Address of the invited person; null if there is none.'),
    role: RoleOfPerson,
    hubs: z.array(Id).describe('Numbers of the hubs.'),
    created_at: CreatedAt,
    expires_at: Timestamp.describe('Time from which the link is refused (UTC).'),
  })
  .meta({ id: 'Invitation', description: 'An invitation that nobody has accepted yet.' })
export type Invitation = z.infer<typeof Invitation>

const Key = z
  .object({
    prefix: z.string().describe('Public prefix of the key, 8 characters. It identifies the key.'),
    name: z.string().describe('Name of the key.'),
    scopes: z.array(GrantedScope).describe('Scopes of the key. They never change.'),
    hubs: HubSelection.describe('Hubs that the key reaches.'),
    created_at: CreatedAt,
    expires_at: Timestamp.nullable().describe('End of the key (UTC); null if it has none.'),
    revoked_at: Timestamp.nullable().describe('Time of the revocation (UTC); null if it is not revoked.'),
    last_used_at: Timestamp.nullable().describe(
      'Last use (UTC), updated at most hourly; null if it was never used.',
    ),
  })
  .meta({ id: 'OwnerKey', description: 'An API key without its secret.' })
export type Key = z.infer<typeof Key>

const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item).describe('All items, oldest first.') })
const person = {
  id: 4,
  identity: 'auth0|64f1',
  role: 'technician',
  hubs: [1, 2],
  created_at: '2026-03-01T12:00:00.000Z',
  name: null,
} as const
const invitation = {
  id: 3,
  name: 'Anna',
  email: 'anna@example.org',
  role: 'technician',
  hubs: [1, 2],
  created_at: '2026-03-01T12:00:00.000Z',
  expires_at: '2026-03-08T12:00:00.000Z',
} as const
const key = {
  prefix: 'a1B2c3D4',
  name: 'Till',
  scopes: ['orders:read'],
  hubs: [1],
  created_at: '2026-03-01T12:00:00.000Z',
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
}
const write = { kind: 'api', scope: 'people:write' } as const
const hubErrors = ['hub_access_denied', 'hub_not_found'] as const

export const ownerPeopleRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'people:read' }, rate: 'standard', tag: 'People' },
  {
    'owner.staff.list': {
      at: 'GET /owners/people',
      response: listOf(Person),
      summary: 'List the people with a role at the hubs',
      description: 'Roles at hubs that the credential reaches.',
      examples: { response: { data: [person] } },
    },
    'owner.staff.grant': {
      at: 'POST /owners/people',
      auth: write,
      body: z.strictObject({
        identity: Identity.describe('Identity of the person at the identity provider (`sub`).'),
        role: RoleOfPerson,
        hub_ids: HubIds.describe('Numbers of the hubs.'),
      }),
      response: Person,
      status: 201,
      errors: hubErrors,
      summary: 'Give a person a role at hubs',
      description:
        'The person signs in at the identity provider and then reaches these hubs with the rights of the role. The same role at the same hubs again changes nothing. A role with a scope that the credential lacks is 403 `scope_missing`. More than 500 roles at the hubs of one owner (`ROLES_PER_OWNER`) are 422 `validation_error`.',
      examples: { body: { identity: 'auth0|64f1', role: 'technician', hub_ids: [1, 2] }, response: person },
    },
    'owner.staff.revoke': {
      at: 'DELETE /owners/people/{role_id}',
      auth: write,
      params: z.object({ role_id: Id.describe('Number of the role.') }),
      response: z.undefined(),
      status: 204,
      errors: ['not_found'],
      summary: 'Take a role from a person',
      description:
        'The right ends within 5 seconds. With the last role, the sessions and passkeys of the person end, too. A role that also holds at hubs out of reach is 404 `not_found`.',
    },
    'owner.invitations.list': {
      at: 'GET /owners/people/invitations',
      response: listOf(Invitation),
      summary: 'List the open invitations',
      description: 'Without their links. Invitations to hubs out of reach are left out.',
      examples: { response: { data: [invitation] } },
    },
    'owner.invitations.create': {
      at: 'POST /owners/people/invitations',
      auth: write,
      body: z.strictObject({
        name: nameText(100).describe('Name of the person.'),
        email: z
          .email()
          .max(254)
          .optional()
          .describe('Address to which the service sends the link. If it is left out: `url` has the link.'),
        role: RoleOfPerson,
        hub_ids: HubIds.describe('Numbers of the hubs.'),
      }),
      response: Invitation.extend({
        url: z
          .string()
          .nullable()
          .describe('Link to pass on; null if the service has sent it by mail. It is shown only here.'),
      }).meta({ id: 'NewInvitation', description: 'A new invitation with its link.' }),
      status: 201,
      rate: 'payment',
      errors: [...hubErrors, 'hub_not_accepting_orders', 'invitation_limit_reached'],
      summary: 'Invite a person',
      description:
        'The person opens the link, creates a passkey, and then signs in at `/console` with the rights of the role. A link works once, for 7 days by default. Without `email` or a mail server `url` has the link. A hub that has moved to another owner or is retired before the person accepts is left out. A role with a scope that the credential lacks is 403 `scope_missing`. An owner has at most 50 open invitations (`INVITATIONS_PER_OWNER`), else 409 `invitation_limit_reached`.',
      examples: {
        body: { name: 'Anna', email: 'anna@example.org', role: 'technician', hub_ids: [1, 2] },
        response: { ...invitation, url: null },
      },
    },
    'owner.invitations.revoke': {
      at: 'DELETE /owners/people/invitations/{invitation_id}',
      auth: write,
      params: z.object({ invitation_id: Id.describe('Number of the invitation.') }),
      response: z.undefined(),
      status: 204,
      errors: ['not_found'],
      summary: 'Withdraw an invitation',
      description: 'Its link no longer works. An accepted or expired invitation is 404 `not_found`.',
    },
    'owner.api_keys.list': {
      at: 'GET /owners/keys',
      response: listOf(Key),
      summary: 'List the API keys of the owner',
      description: 'Without their secrets. Keys that reach hubs out of reach are left out.',
      examples: { response: { data: [key] } },
    },
    'owner.api_keys.create': {
      at: 'POST /owners/keys',
      auth: write,
      body: z.strictObject({
        name: nameText(100).describe('Name of the key.'),
        scopes: z
          .array(GrantedScope)
          .min(1)
          .max(scopes.length)
          .refine(
            (given) => !given.some((scope) => scope.startsWith('diag:')),
            'must not contain scopes of diagnostics',
          )
          .describe('Scopes of the key; they never change. Scopes of diagnostics are not allowed.'),
        hub_ids: HubIds.describe('Numbers of the hubs that the key reaches, all of one owner.'),
        expires_at: Timestamp.optional().describe('End of the key (UTC). If it is left out: none.'),
      }),
      response: Key.extend({
        api_key: z.string().describe('The key (`lk_…`, in cell 7 `lk7_…`). It is shown only here.'),
      }).meta({ id: 'NewOwnerKey', description: 'A new API key with its secret.' }),
      status: 201,
      errors: hubErrors,
      summary: 'Issue an API key',
      description:
        'The service stores only a digest: `api_key` is shown only here. A scope that the credential lacks is 403 `scope_missing`. More than 100 valid keys of one owner (`KEYS_PER_OWNER`) are 422 `validation_error`.',
      examples: { body: { name: 'Till', scopes: ['orders:read'], hub_ids: [1] } },
    },
    'owner.api_keys.revoke': {
      at: 'DELETE /owners/keys/{prefix}',
      auth: write,
      params: z.object({ prefix: z.string().max(64).describe('Public prefix of the key.') }),
      response: z.undefined(),
      status: 204,
      errors: ['not_found'],
      summary: 'Revoke an API key',
      description: 'The key and its open streams end within 5 seconds. A second revocation changes nothing.',
    },
  },
)
