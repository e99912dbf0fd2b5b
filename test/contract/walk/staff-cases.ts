import { roleScopes } from '../../../protocol/model/scopes.ts'
import type { Call, RouteCases } from './call.ts'
import type { World } from './world.ts'

const technician = { identity: 'tom', role: 'technician', hub_ids: [1] }
const invitation = { name: 'Tom', role: 'technician', hub_ids: [1] }
const till = { name: 'Till', scopes: ['orders:read'], hub_ids: [1] }

const contact = { hub_id: 1, email: 'anna@example.org', morning_mail: true }

const asOwner = (): Promise<Call> => Promise.resolve({ as: 'owner' })
const wrongHubs = (body: object): NonNullable<RouteCases['errors']> => ({
  hub_not_found: () => Promise.resolve({ as: 'owner', body: { ...body, hub_ids: [1, 2] } }),
  hub_access_denied: () => Promise.resolve({ as: 'limited', body: { ...body, hub_ids: [2] } }),
})

async function role({ owner }: World): Promise<NonNullable<Call['params']>> {
  const { json } = await owner('POST', 'people', technician)
  return { role_id: (json as { id: number }).id }
}

async function invited({ owner }: World): Promise<NonNullable<Call['params']>> {
  const { json } = await owner('POST', 'people/invitations', invitation)
  return { invitation_id: (json as { id: number }).id }
}

async function key({ owner }: World): Promise<NonNullable<Call['params']>> {
  const { json } = await owner('POST', 'keys', till)
  return { prefix: (json as { prefix: string }).prefix }
}

async function mailed({ owner }: World): Promise<NonNullable<Call['params']>> {
  const { json } = await owner('POST', 'contacts', contact)
  return { contact_id: (json as { id: number }).id }
}

/** The code in the mail that asks a new contact. */
async function asked(world: World): Promise<string> {
  await mailed(world)
  return /#(\w+)/.exec(world.mails.at(-1)!.text)![1]!
}

/** People with a role at hubs, recipients of mails, and API keys. */
export const staffCases = {
  'owner.staff.list': { success: asOwner },
  'owner.staff.grant': {
    gives: roleScopes.technician,
    success: () => Promise.resolve({ as: 'owner', body: technician }),
    errors: wrongHubs(technician),
  },
  'owner.staff.revoke': {
    success: async (world) => ({ as: 'owner', params: await role(world) }),
    errors: { not_found: async (world) => ({ as: 'other-owner', params: await role(world) }) },
  },
  'owner.invitations.list': { success: asOwner },
  'owner.invitations.create': {
    gives: roleScopes.technician,
    success: () => Promise.resolve({ as: 'owner', body: invitation }),
    errors: wrongHubs(invitation),
    elsewhere: { invitation_limit_reached: 'test/cloud/people/staff/invitations.test.ts' },
  },
  'owner.invitations.revoke': {
    success: async (world) => ({ as: 'owner', params: await invited(world) }),
    errors: { not_found: async (world) => ({ as: 'other-owner', params: await invited(world) }) },
  },
  'owner.contacts.list': { success: asOwner },
  'owner.contacts.add': {
    success: () => Promise.resolve({ as: 'owner', body: contact }),
    errors: {
      hub_not_found: () => Promise.resolve({ as: 'owner', body: { ...contact, hub_id: 2 } }),
      hub_access_denied: () => Promise.resolve({ as: 'limited', body: { ...contact, hub_id: 2 } }),
    },
    elsewhere: { contact_limit_reached: 'test/cloud/people/staff/contacts.test.ts' },
  },
  'owner.contacts.remove': {
    success: async (world) => ({ as: 'owner', params: await mailed(world) }),
    errors: { not_found: async (world) => ({ as: 'other-owner', params: await mailed(world) }) },
  },
  'owner.contacts.ask': {
    success: async (world) => ({ as: 'owner', params: await mailed(world) }),
    errors: { not_found: async (world) => ({ as: 'other-owner', params: await mailed(world) }) },
    elsewhere: {
      contact_limit_reached: 'test/cloud/people/staff/contacts.test.ts',
      service_unavailable: 'test/cloud/people/staff/contacts.test.ts',
    },
  },
  'owner.contacts.answer': {
    success: async (world) => ({ as: 'nobody', body: { code: await asked(world), accept: true } }),
    errors: { not_found: () => Promise.resolve({ as: 'nobody', body: { code: 'wrong', accept: true } }) },
  },
  'owner.api_keys.list': { success: asOwner },
  'owner.api_keys.create': {
    gives: ['orders:read'],
    success: () => Promise.resolve({ as: 'owner', body: till }),
    errors: wrongHubs(till),
  },
  'owner.api_keys.revoke': {
    success: async (world) => ({ as: 'owner', params: await key(world) }),
    errors: { not_found: async (world) => ({ as: 'other-owner', params: await key(world) }) },
  },
} satisfies Record<string, RouteCases>
