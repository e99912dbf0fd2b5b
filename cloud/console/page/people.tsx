import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Key } from '../../../protocol/contract/owner-people.ts'
import { isScope, roleNames, roleScopes, type RoleName } from '../../../protocol/model/scopes.ts'
import { Contacts } from './contacts.tsx'
import { useData } from './data.ts'
import { time } from './format.ts'
import { useHubs, useZone } from './hubs.ts'
import {
  ActForm,
  Card,
  Field,
  Heading,
  HeldAct,
  Input,
  Loaded,
  Nothing,
  ZoneNote,
  type Texts,
} from './parts.tsx'
import { hubWords, roleChoices, scopeWords } from './role-words.ts'
import { Secret } from './secret.tsx'
import { ask, can } from './session.ts'

/** The chosen hubs of a form. */
const chosenHubs = (given: FormData): number[] => given.getAll('hub').map(Number)

/** Hubs to choose, all of them at first. */
function HubBoxes(): JSX.Element {
  const { data: hubs = [] } = useHubs()
  return (
    <fieldset class="flex flex-wrap gap-x-4">
      <legend class="text-sm">Hubs</legend>
      {hubs.map(({ id, name }) => (
        <label key={id} class="touch flex items-center gap-2">
          <input type="checkbox" name="hub" value={id} defaultChecked class="checkbox checkbox-sm" /> {name}
        </label>
      ))}
    </fieldset>
  )
}

/** Role and hubs of a form. */
const RoleFields = (): JSX.Element => (
  <>
    <Field label="Role">
      <select name="role" class="select w-full">
        {roleNames.map((name) => (
          <option key={name} value={name} selected={name === 'technician'}>
            {roleChoices[name]}
          </option>
        ))}
      </select>
    </Field>
    <HubBoxes />
  </>
)

const LINE = 'border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center'

/** People with a role at the hubs. */
export function PeoplePage(): JSX.Element {
  const found = useData(() => ask('GET /owners/people'), ['people'])
  const zone = useZone()
  const grant = ({ identity = '', role }: Texts, given: FormData) =>
    ask('POST /owners/people', { body: { identity, role: role as RoleName, hub_ids: chosenHubs(given) } })
  return (
    <>
      <Heading text="People" />
      <ZoneNote zone={zone} />
      <Loaded of={found}>
        {({ data }) => (
          <Card name="people">
            {data.length === 0 && <Nothing>Nobody has a role yet.</Nothing>}
            <ul>
              {data.map(({ id, identity, name, role, hubs, created_at }) => (
                <li key={id} class={LINE} data-role={id}>
                  <b class="break-all">{name ?? identity}</b>
                  <span class="grow">
                    {role}, {hubWords(hubs)} <span class="quiet text-sm">since {time(created_at, zone)}</span>
                  </span>
                  {can('people:write') && (
                    <HeldAct
                      does={`Remove the role of ${name ?? identity}`}
                      label={`Remove the role ${role} of ${name ?? identity}`}
                      run={() => ask('DELETE /owners/people/{role_id}', { params: { role_id: id } })}
                    >
                      Remove the role
                    </HeldAct>
                  )}
                </li>
              ))}
            </ul>
          </Card>
        )}
      </Loaded>
      <Invitations zone={zone} />
      <Contacts zone={zone} />
      {can('people:write') && (
        <Card title="Give a role to a person of the identity provider" class="mt-3" name="new">
          <ActForm
            class="grid gap-3 max-w-xl"
            does={({ identity }) => `Give the role to ${identity}`}
            run={grant}
          >
            <Input label="Identity at the identity provider (sub)" name="identity" required maxLength={255} />
            <RoleFields />
            <button class="btn btn-primary justify-self-start">Give the role</button>
          </ActForm>
        </Card>
      )}
    </>
  )
}

/** Open invitations, and a new one. */
function Invitations({ zone }: { zone: string | undefined }): JSX.Element {
  const found = useData(() => ask('GET /owners/people/invitations'), ['invitations'])
  const [link, setLink] = useState<string | null>(null)
  async function invite(texts: Texts, given: FormData): Promise<void> {
    const { name = '', email = '', role } = texts
    const body = {
      name,
      role: role as RoleName,
      hub_ids: chosenHubs(given),
      ...(email !== '' && { email }),
    }
    setLink((await ask('POST /owners/people/invitations', { body })).url)
  }
  return (
    <>
      {found.data !== undefined && found.data.data.length > 0 && (
        <Card title="Open invitations" class="mt-3" name="invitations">
          <ul>
            {found.data.data.map(({ id, name, email, role, hubs, expires_at }) => (
              <li key={id} class={LINE} data-invitation={id}>
                <b class="break-all">{name}</b>
                <span class="grow">
                  {role}, {hubWords(hubs)}{' '}
                  <span class="quiet text-sm">
                    {email !== null && `${email}, `}until {time(expires_at, zone)}
                  </span>
                </span>
                {can('people:write') && (
                  <HeldAct
                    does={`Withdraw the invitation of ${name}`}
                    run={() =>
                      ask('DELETE /owners/people/invitations/{invitation_id}', {
                        params: { invitation_id: id },
                      })
                    }
                  >
                    Withdraw
                  </HeldAct>
                )}
              </li>
            ))}
          </ul>
        </Card>
      )}
      {can('people:write') && (
        <Card title="Invite a person" class="mt-3" name="invite">
          <Secret of="invitation" what="Link" value={link} />
          <ActForm class="grid gap-3 max-w-xl" does={({ name }) => `Invite ${name}`} run={invite}>
            <Input label="Name" name="name" required maxLength={100} />
            <Input
              label="Mail address (without one, you pass the link on)"
              name="email"
              type="email"
              maxLength={254}
            />
            <RoleFields />
            <button class="btn btn-primary justify-self-start">Invite</button>
          </ActForm>
        </Card>
      )}
    </>
  )
}

function stateOf({ revoked_at, expires_at, last_used_at }: Key, zone: string | undefined): string {
  if (revoked_at !== null) return `revoked ${time(revoked_at, zone)}`
  const used = last_used_at === null ? 'never used' : `last used ${time(last_used_at, zone)}`
  return expires_at === null ? used : `${used}, ends ${time(expires_at, zone)}`
}

/** API keys of the owner. */
export function KeysPage(): JSX.Element {
  const found = useData(() => ask('GET /owners/keys'), ['keys'])
  const zone = useZone()
  const [secret, setSecret] = useState<string | null>(null)
  async function create({ name = '' }: Texts, given: FormData): Promise<void> {
    const scopes = given.getAll('scope') as (typeof roleScopes)['owner'][number][]
    const body = { name, scopes: scopes as never[], hub_ids: chosenHubs(given) }
    setSecret((await ask('POST /owners/keys', { body })).api_key)
  }
  return (
    <>
      <Heading text="API keys" />
      <ZoneNote zone={zone} />
      <Secret of="key" value={secret} />
      <Loaded of={found}>
        {({ data }) => (
          <Card name="keys">
            {data.length === 0 && <Nothing>No key yet.</Nothing>}
            <ul>
              {data.map((key) => (
                <KeyLine key={key.prefix} apiKey={key} zone={zone} />
              ))}
            </ul>
          </Card>
        )}
      </Loaded>
      {can('people:write') && (
        <Card title="Issue a key" class="mt-3" name="new">
          <ActForm class="grid gap-3" does={({ name }) => `Issue the key “${name}”`} run={create}>
            <Input label="Name" name="name" class="input w-full max-w-xl" required maxLength={100} />
            <fieldset class="grid gap-x-4 sm:grid-cols-2 xl:grid-cols-3">
              <legend class="text-sm">Rights</legend>
              {roleScopes.owner.map((scope) => (
                <label key={scope} class="touch flex items-center gap-2">
                  <input
                    type="checkbox"
                    name="scope"
                    value={scope}
                    class="checkbox checkbox-sm"
                    defaultChecked={scope.endsWith(':read')}
                  />
                  <span>
                    {scopeWords[scope]} <code class="quiet text-xs">{scope}</code>
                  </span>
                </label>
              ))}
            </fieldset>
            <HubBoxes />
            <button class="btn btn-primary justify-self-start">Issue the key</button>
          </ActForm>
        </Card>
      )}
    </>
  )
}

function KeyLine({ apiKey, zone }: { apiKey: Key; zone: string | undefined }): JSX.Element {
  const { prefix, name, scopes, hubs, revoked_at } = apiKey
  return (
    <li class="border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center" data-key={prefix}>
      <span class="grow min-w-0">
        <b class="break-words">{name}</b> <code>{prefix}</code>
        <span class="block text-sm quiet break-words">
          {stateOf(apiKey, zone)}. {hubWords(hubs)}
        </span>
        <details class="text-sm">
          <summary class="link w-fit">Rights: {scopes.length}</summary>
          <ul>
            {scopes.map((scope) => (
              <li key={scope}>
                {isScope(scope) ? scopeWords[scope] : 'Other'} <code class="quiet">{scope}</code>
              </li>
            ))}
          </ul>
        </details>
      </span>
      {can('people:write') && revoked_at === null && (
        <HeldAct
          does={`Revoke ${name}`}
          run={() => ask('DELETE /owners/keys/{prefix}', { params: { prefix } })}
        >
          Revoke
        </HeldAct>
      )}
    </li>
  )
}
