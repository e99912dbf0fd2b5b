import type { JSX } from 'preact'
import type { Contact } from '../../../protocol/contract/owner-contacts.ts'
import { severities, type Severity } from '../../../protocol/model/alarms.ts'
import { textsOf } from '../../../protocol/ui/form.ts'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { useData } from './data.ts'
import { act, Card, Field, Nothing, useHubs } from './parts.tsx'
import { ask, can } from './session.ts'

const severityWords: Record<Severity, string> = {
  info: 'all alarms',
  warning: 'warnings and critical alarms',
  critical: 'critical alarms only',
}

type Wanted = Omit<Contact, 'id' | 'created_at'>
/** Adds a contact, or changes the one with the same address. */
const set = (hub_id: number, { email, name, severity, morning_mail }: Wanted): Promise<Contact> =>
  ask('POST /owners/contacts', { body: { hub_id, email, name, severity, morning_mail } })

/** The people who get the owner's mails: about alarms, and each morning. */
export function Contacts(): JSX.Element | null {
  const { data: hubs } = useHubs()
  const found = useData(() => ask('GET /owners/contacts'), ['contacts'])
  const hub = hubs?.[0]?.id
  if (!found.data || hub === undefined) return null
  const { data: contacts } = found.data
  return (
    <Card title="Mails" class="mt-3" name="contacts">
      <p class="text-sm quiet mb-2">
        The morning mail has the sales of yesterday, open problems and what to refill, at 7:00 hub time.
      </p>
      {contacts.length === 0 && <Nothing>Nobody gets mails yet.</Nothing>}
      <ul>
        {contacts.map((contact) => (
          <ContactLine key={contact.id} hub={hub} contact={contact} />
        ))}
      </ul>
      {can('people:write') && <ContactForm hub={hub} />}
    </Card>
  )
}

function ContactLine({ hub, contact }: { hub: number; contact: Contact }): JSX.Element {
  const { id, email, name, severity, morning_mail } = contact
  const mayChange = can('people:write')
  return (
    <li class="border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center" data-contact={id}>
      <span class="grow min-w-0 break-words">
        <b>{name ?? email}</b>
        <span class="block text-sm quiet break-all">
          {name !== null && `${email}, `}
          {severityWords[severity]}
        </span>
      </span>
      <label class="touch flex items-center gap-2">
        <input
          type="checkbox"
          class="toggle toggle-sm"
          checked={morning_mail}
          disabled={!mayChange}
          aria-label={`Morning mail for ${name ?? email}`}
          onChange={({ currentTarget: { checked } }) =>
            void act(`Morning mail ${checked ? 'on' : 'off'}`, () =>
              set(hub, { ...contact, morning_mail: checked }),
            )
          }
        />{' '}
        Morning mail
      </label>
      {mayChange && (
        <HoldButton
          class="btn-sm min-h-9"
          label={`Remove ${email}`}
          onHeld={() =>
            void act(`Remove ${email}`, () =>
              ask('DELETE /owners/contacts/{contact_id}', { params: { contact_id: id } }),
            )
          }
        >
          Remove
        </HoldButton>
      )}
    </li>
  )
}

function ContactForm({ hub }: { hub: number }): JSX.Element {
  function add(event: SubmitEvent): void {
    const { email = '', name = '', severity, morning } = textsOf(event)
    const form = event.currentTarget as HTMLFormElement
    void act(`Add ${email}`, async () => {
      const chosen = { severity: severity as Severity, morning_mail: morning !== undefined }
      await set(hub, { email, name: name === '' ? null : name, ...chosen })
      form.reset()
    })
  }
  return (
    <form class="grid gap-3 max-w-xl mt-3" onSubmit={add}>
      <Field label="Mail address">
        <input name="email" type="email" class="input w-full" required maxLength={254} />
      </Field>
      <Field label="Name">
        <input name="name" class="input w-full" maxLength={200} />
      </Field>
      <Field label="Alarms">
        <select name="severity" class="select w-full">
          {severities.map((severity) => (
            <option key={severity} value={severity} selected={severity === 'warning'}>
              {severityWords[severity]}
            </option>
          ))}
        </select>
      </Field>
      <label class="touch flex items-center gap-2">
        <input name="morning" type="checkbox" class="checkbox checkbox-sm" defaultChecked /> Morning mail
      </label>
      <button class="btn btn-primary justify-self-start">Add</button>
    </form>
  )
}
