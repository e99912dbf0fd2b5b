import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Contact } from '../../../protocol/contract/owner-contacts.ts'
import { severities, type Severity } from '../../../protocol/model/alarms.ts'
import { useData } from './data.ts'
import { time } from './format.ts'
import { act, ActForm, Card, Field, HeldAct, Input, Loaded, Nothing, type Texts } from './parts.tsx'
import { hubWords } from './role-words.ts'
import { ask, can } from './session.ts'

const severityWords: Record<Severity, string> = {
  info: 'all alarms',
  warning: 'warnings and critical alarms',
  critical: 'critical alarms only',
}

type Wanted = Pick<Contact, 'email' | 'name' | 'severity' | 'morning_mail'>
/** Adds a contact, or changes the one with the same address. */
const set = (hub_id: number, { email, name, severity, morning_mail }: Wanted): Promise<Contact> =>
  ask('POST /owners/contacts', { body: { hub_id, email, name, severity, morning_mail } })

/** The people who get the owner's mails: about alarms, and each morning. */
export function Contacts({ zone }: { zone: string | undefined }): JSX.Element {
  const found = useData(() => ask('GET /owners/contacts'), ['contacts'])
  return (
    <Card title="Mails" class="mt-3" name="contacts">
      <p class="text-sm quiet mb-2">
        The morning mail has the sales of yesterday, open problems and what to refill. It is sent at 7:00 by
        the clock of the hub, unless the operator of the service has set MORNING_MAIL_AT. A new address gets
        mails after its holder has agreed by the link in a first mail.
      </p>
      <Loaded of={found}>
        {({ data, owners, sends_mail }) => (
          <>
            {!sends_mail && (
              <p class="alert alert-warning alert-soft text-base-content mb-2" role="note">
                This service has no mail server, so nobody gets mails. Its operator can set SMTP_URL.
              </p>
            )}
            {owners.map((owner) => (
              <OwnerContacts
                key={owner.hub_ids[0]}
                owner={owner}
                isOnly={owners.length === 1}
                contacts={data.filter(({ hub_ids }) => hub_ids.some((id) => owner.hub_ids.includes(id)))}
                sendsMail={sends_mail}
                zone={zone}
              />
            ))}
          </>
        )}
      </Loaded>
    </Card>
  )
}

interface OwnerProps {
  owner: { name: string; hub_ids: readonly number[]; reaches_all: boolean }
  contacts: readonly Contact[]
  isOnly: boolean
  sendsMail: boolean
  zone: string | undefined
}

/** The contacts of one owner. A person may work for several. */
function OwnerContacts({ owner, contacts, isOnly, sendsMail, zone }: OwnerProps): JSX.Element {
  const { name, hub_ids, reaches_all } = owner
  const [hub] = hub_ids
  return (
    <section class={isOnly ? '' : 'mt-4'} aria-label={`Mails of ${name}`}>
      {!isOnly && (
        <h3 class="font-semibold break-words">
          {name} <span class="quiet font-normal text-sm">{hubWords(hub_ids)}</span>
        </h3>
      )}
      {!reaches_all || hub === undefined ? (
        <Nothing>The mails are about all hubs of this owner, and you do not manage all of them.</Nothing>
      ) : (
        <>
          {contacts.length === 0 && <Nothing>Nobody gets mails yet.</Nothing>}
          <ul>
            {contacts.map((contact) => (
              <ContactLine key={contact.id} hub={hub} contact={contact} sendsMail={sendsMail} zone={zone} />
            ))}
          </ul>
          {can('people:write') && <ContactForm hub={hub} />}
        </>
      )}
    </section>
  )
}

function stateOf(
  { confirmed, confirmation_mailed_at: asked, severity }: Contact,
  zone: string | undefined,
): string {
  if (confirmed) return severityWords[severity]
  return asked === null ? 'not asked yet, gets no mails' : `asked ${time(asked, zone)}, has not agreed yet`
}

interface LineProps {
  hub: number
  contact: Contact
  sendsMail: boolean
  zone: string | undefined
}

function ContactLine({ hub, contact, sendsMail, zone }: LineProps): JSX.Element {
  const { id, email, name, morning_mail, confirmed } = contact
  const mayChange = can('people:write')
  return (
    <li class="border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center" data-contact={id}>
      <span class="grow min-w-0 break-words">
        <b>{name ?? email}</b>
        <span class="block text-sm quiet break-words">
          {name !== null && `${email}, `}
          {stateOf(contact, zone)}
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
      {mayChange && !confirmed && sendsMail && (
        <button
          class="btn btn-sm"
          aria-label={`Ask ${email} again`}
          onClick={() =>
            void act(`Ask ${email} again`, () =>
              ask('POST /owners/contacts/{contact_id}/confirmation', { params: { contact_id: id } }),
            )
          }
        >
          Ask again
        </button>
      )}
      {mayChange && (
        <HeldAct
          does={`Remove ${email}`}
          run={() => ask('DELETE /owners/contacts/{contact_id}', { params: { contact_id: id } })}
        >
          Remove
        </HeldAct>
      )}
    </li>
  )
}

function ContactForm({ hub }: { hub: number }): JSX.Element {
  function add({ email = '', name = '', severity, morning }: Texts) {
    const chosen = { severity: severity as Severity, morning_mail: morning !== undefined }
    return set(hub, { email, name: name === '' ? null : name, ...chosen })
  }
  return (
    <ActForm class="grid gap-3 max-w-xl mt-3" does={({ email }) => `Add ${email}`} run={add}>
      <Input label="Mail address" name="email" type="email" required maxLength={254} />
      <Input label="Name" name="name" maxLength={200} />
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
    </ActForm>
  )
}

/** The page of the link in the mail that asks the holder of an address. It needs no sign-in. */
export function ContactAnswerPage(): JSX.Element {
  const [answer, setAnswer] = useState<string | null>(null)
  const [failure, setFailure] = useState<string | null>(null)
  async function send(accept: boolean): Promise<void> {
    try {
      const { email } = await ask('POST /owners/contacts/answer', {
        body: { code: location.hash.slice(1), accept },
      })
      setAnswer(accept ? `${email} gets the mails from now on.` : `${email} gets no mails.`)
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <div class="card bg-base-100 p-6 mx-auto max-w-md w-full grid gap-3 mt-8">
      <h1 class="text-xl font-semibold">Mails from Larder</h1>
      {answer === null ? (
        <>
          <p>
            Somebody entered your address for mails about vending hubs: alarms, or a report each morning. The
            mail with the link names the owner of the hubs.
          </p>
          {failure !== null && <p role="alert">{failure}</p>}
          <button class="btn btn-primary" onClick={() => void send(true)}>
            I want these mails
          </button>
          <button class="btn" onClick={() => void send(false)}>
            No mails to my address
          </button>
        </>
      ) : (
        <p role="status">{answer}</p>
      )}
    </div>
  )
}
