import { z } from 'zod'
import { nameText } from '../model/name-text.ts'
import { CreatedAt, Id, Timestamp } from './fields.ts'
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
    hub_ids: z.array(Id).describe('Numbers of the hubs that the mails are about: all hubs of the owner.'),
    confirmed: z
      .boolean()
      .describe('Whether the holder of the address has agreed. No mail about hubs is sent before.'),
    confirmation_mailed_at: Timestamp.nullable().describe(
      'Time of the last mail that asks the holder (UTC); null if none was sent.',
    ),
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
  hub_ids: [1, 2],
  confirmed: false,
  confirmation_mailed_at: '2026-03-01T12:00:00.000Z',
} as const
const write = { kind: 'api', scope: 'people:write' } as const

export const ownerContactRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'people:read' }, rate: 'standard', tag: 'People' },
  {
    'owner.contacts.list': {
      at: 'GET /owners/contacts',
      response: z.object({
        data: z.array(Contact).describe('All contacts, oldest first.'),
        owners: z
          .array(
            z.object({
              name: z.string().describe('Name of the owner.'),
              hub_ids: z.array(Id).describe('Numbers of the hubs of the owner that the credential reaches.'),
              reaches_all: z
                .boolean()
                .describe(
                  'Whether the credential reaches all hubs of the owner. Only then it reads and changes the contacts.',
                ),
            }),
          )
          .describe('Owners of the hubs that the credential reaches.'),
        sends_mail: z.boolean().describe('Whether the service has a mail server.'),
      }),
      summary: 'List the contacts',
      description: 'The contacts of an owner, if the credential reaches all hubs of the owner.',
      examples: {
        response: {
          data: [contact],
          owners: [{ name: 'Springfield Vending', hub_ids: [1, 2], reaches_all: true }],
          sends_mail: true,
        },
      },
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
        'The contact gets mails about all hubs of the owner of the hub, so the credential must reach all of them: otherwise 403 `hub_access_denied`. If the owner already has the address, the call changes the rest. A new address gets a mail with a link and gets no other mail before its holder has agreed there. Without a mail server, or after too many such mails (`UNASKED_MAILS_PER_ADDRESS`, `UNASKED_MAILS_PER_OWNER`), `confirmation_mailed_at` is null. An owner has at most 50 contacts, else 409 `contact_limit_reached`.',
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
    'owner.contacts.ask': {
      at: 'POST /owners/contacts/{contact_id}/confirmation',
      auth: write,
      params: z.object({ contact_id: Id.describe('Number of the contact.') }),
      response: Contact,
      rate: 'payment',
      errors: ['not_found', 'contact_limit_reached', 'service_unavailable'],
      summary: 'Ask a contact again',
      description:
        'Sends the mail with the link again; the former link ends. A contact that has agreed gets none. An address gets at most 3 such mails within 24 hours (`UNASKED_MAILS_PER_ADDRESS`), and an owner sends at most 50 (`UNASKED_MAILS_PER_OWNER`), else 409 `contact_limit_reached`. A mail that the mail server has not accepted does not count; an owner has at most 50 such tries an hour. Without a mail server: 503 `service_unavailable`.',
      examples: { response: contact },
    },
    'owner.contacts.answer': {
      at: 'POST /owners/contacts/answer',
      auth: { kind: 'none' },
      rate: 'lookup',
      body: z.strictObject({
        code: z.string().min(1).max(100).describe('Secret in the link of the mail, after the `#`.'),
        accept: z.boolean().describe('Whether the holder of the address wants the mails.'),
      }),
      response: z.object({
        email: z.string().describe('Mail address.'),
        confirmed: z.boolean().describe('Whether the address gets the mails now.'),
      }),
      errors: ['not_found'],
      summary: 'Answer as the holder of an address',
      description:
        'The code of the link is the credential. It can be accepted for 7 days (`INVITATION_MS`). With `accept: false` the contact is deleted; this works later, too.',
      examples: {
        body: { code: 'V3x8wq0Jc2', accept: true },
        response: { email: 'anna@example.org', confirmed: true },
      },
    },
  },
)
