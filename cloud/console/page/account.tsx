import { startRegistration, type PublicKeyCredentialCreationOptionsJSON } from '@simplewebauthn/browser'
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { textsOf } from '../../../protocol/ui/form.ts'
import { useData } from './data.ts'
import { time } from './format.ts'
import { useZone } from './hubs.ts'
import { act, Card, Heading, HeldAct, Input, Loaded, ZoneNote } from './parts.tsx'
import { deviceLabel, OtherAddress } from './passkey.tsx'
import { hubWords, roleWords } from './role-words.ts'
import { session } from './session.ts'
import { callSession } from './sign-in.ts'

interface Passkey {
  id: string
  label: string | null
  created_at: string
}

/** The signed-in person: roles, and passkeys. */
export function AccountPage(): JSX.Element {
  const { name, email, roles } = session.value!
  const found = useData(() => callSession<{ data: Passkey[] }>('GET', '/passkeys'), ['passkeys'])
  const zone = useZone()
  async function add(): Promise<void> {
    const begun = await callSession<{ registration: PublicKeyCredentialCreationOptionsJSON }>(
      'POST',
      '/passkey/begin',
      { add: true },
    )
    const created = await startRegistration({ optionsJSON: begun.registration })
    await callSession('POST', '/passkey/finish', { ...created, label: deviceLabel() })
  }
  return (
    <>
      <Heading text="Account" />
      <Card name="roles">
        <p>
          <b class="break-words">{name ?? email}</b>
        </p>
        <ul>
          {roles.map(({ role, hubs }) => (
            <li key={`${role} ${hubWords(hubs)}`}>
              {roleWords[role]}. <span class="quiet">For {hubWords(hubs)}.</span>
            </li>
          ))}
        </ul>
      </Card>
      <Loaded of={found}>
        {({ data }) =>
          data.length > 0 ? (
            <Card title="Passkeys" class="mt-3" name="passkeys">
              <p class="text-sm quiet">
                Add a passkey on each device that you use, so that a lost device does not lock you out.
              </p>
              <ZoneNote zone={zone} />
              <ul>
                {data.map((passkey, index) => (
                  <PasskeyLine
                    zone={zone}
                    key={passkey.id}
                    passkey={passkey}
                    label={passkey.label ?? `Passkey ${index + 1}`}
                    isOnly={data.length === 1}
                  />
                ))}
              </ul>
              <button class="btn btn-primary mt-3" onClick={() => void act('Add a passkey', add)}>
                Add a passkey
              </button>
              <OtherAddress />
            </Card>
          ) : (
            <p class="text-sm quiet mt-3">
              You sign in at an identity provider, so you have no passkey here.
            </p>
          )
        }
      </Loaded>
    </>
  )
}

interface LineProps {
  passkey: Passkey
  label: string
  isOnly: boolean
  zone: string | undefined
}

function PasskeyLine({ passkey: { id, created_at }, label, isOnly, zone }: LineProps): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  function rename(event: SubmitEvent): void {
    const { label: typed = '' } = textsOf(event)
    void act(`Rename “${label}”`, async () => {
      await callSession('PATCH', `/passkeys/${id}`, { label: typed })
      setOpen(false)
    })
  }
  return (
    <li class="border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center" data-passkey={id}>
      <span class="grow min-w-0">
        <b class="break-words">{label}</b>
        <span class="block quiet text-sm">created {time(created_at, zone)}</span>
      </span>
      <button
        class="btn btn-sm"
        aria-expanded={isOpen}
        aria-label={`Rename ${label}`}
        onClick={() => setOpen(!isOpen)}
      >
        Rename
      </button>
      {!isOnly && (
        <HeldAct
          does={`Remove “${label}”`}
          label={`Remove ${label}`}
          run={() => callSession('DELETE', `/passkeys/${id}`)}
        >
          Remove
        </HeldAct>
      )}
      {isOpen && (
        <form class="flex flex-wrap gap-2 items-end w-full py-2" onSubmit={rename}>
          <Input label="Name of the device" name="label" required maxLength={60} defaultValue={label} />
          <button class="btn btn-primary">Save</button>
        </form>
      )}
    </li>
  )
}
