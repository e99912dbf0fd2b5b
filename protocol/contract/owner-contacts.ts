import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { CreatedAt, Id } from './fields.ts'
import { AlarmSeverity } from './owner-alarms.ts'
import { defineRoutes } from './route.ts'

/** People who get an owner's mails: about alarms, and each morning. */

const Contact = z
  .object({
    id: Id.describe('Number of the contact.'),
    email: z.string().describe('Mail address.'),
    name: z.string().nullable().describe('Name of the person; null if none was given.'),
    severity: AlarmSeverity.describe('Lowest severity of an alarm that is mailed.'),
    morning_mail: z.boolean().describe('Whether the person gets the mail of each morning.'),
    created_at: CreatedAt,
  })
  .meta({ id: 'Contact', description: 'A recipient of the mails of an owner.' })
export type Contact = z.infer<typeof Contact>

const contact = {
  id: 2,
  email: 'anna@example.org',
  name: 'Anna',
  severity: 'warning',
  morning_mail: true,
  created_at: '2026-03-01T12:00:00.000Z',
} as const
const write = { kind: 'api', scope: 'people:write' } as const

export const ownerContactRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'people:read' }, rate: 'standard', tag: 'People' },
  {
    'owner.contacts.list': {
      at: 'GET /owners/contacts',
      response: z.object({ data: z.array(Contact).describe('All contacts, oldest first.') }),
      summary: 'List the contacts',
      description: 'The contacts of an owner, if the credential reaches all hubs of the owner.',
      examples: { response: { data: [contact] } },
    },
    'owner.contacts.add': {
      at: 'POST /owners/contacts',
      auth: write,
      body: z.strictObject({
        hub_id: Id.describe('Number of a hub of the owner.'),
        email: z.email().max(254).describe('Mail address.'),
        name: nameText(200)
          .nullable()
          .default(null)
          .describe('Name of the person. If it is left out or null: none.'),
        severity: AlarmSeverity.default('warning').describe('Lowest severity of an alarm that is mailed.'),
        morning_mail: z
          .boolean()
          .default(false)
          .describe('Whether the person gets the mail of each morning.'),
      }),
      response: Contact,
      status: 201,
      rate: 'payment',
      errors: ['hub_access_denied', 'hub_not_found', 'contact_limit_reached'],
      summary: 'Add or change a contact',
      description:
        'The contact gets mails about all hubs of the owner of the hub, so the credential must reach all of them: otherwise 403 `hub_access_denied`. If the owner already has the address, the call changes the rest. An owner has at most 50 contacts, else 409 `contact_limit_reached`.',
      examples: {
        body: { hub_id: 1, email: 'anna@example.org', name: 'Anna', morning_mail: true },
        response: contact,
      },
    },
    'owner.contacts.remove': {
      at: 'DELETE /owners/contacts/{contact_id}',
      auth: write,
      params: z.object({ contact_id: Id.describe('Number of the contact.') }),
      response: z.undefined(),
      status: 204,
      errors: ['not_found'],
      summary: 'Remove a contact',
      description: 'Mails that wait for this contact are not sent.',
    },
  },
)
