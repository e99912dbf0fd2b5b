import { startRegistration, type PublicKeyCredentialCreationOptionsJSON } from '@simplewebauthn/browser'
import type { JSX } from 'preact'
import { HoldButton } from '../../../protocol/ui/hold-button.tsx'
import { useData } from './data.ts'
import { time } from './format.ts'
import { act, Card, Heading, Loaded } from './parts.tsx'
import { callSession, OtherAddress } from './passkey.tsx'
import { hubWords, roleWords } from './role-words.ts'
import { session } from './session.ts'

/** The signed-in person: roles, and passkeys. */
export function AccountPage(): JSX.Element {
  const { name, email, roles } = session.value!
  const found = useData(
    () => callSession<{ data: { id: string; created_at: string }[] }>('GET', 'passkeys'),
    ['passkeys'],
  )
  async function add(): Promise<void> {
    const begun = await callSession<{ registration: PublicKeyCredentialCreationOptionsJSON }>(
      'POST',
      'passkey/begin',
      { add: true },
    )
    await callSession('POST', 'passkey/finish', await startRegistration({ optionsJSON: begun.registration }))
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
          data.length > 0 && (
            <Card title="Passkeys" class="mt-3" name="passkeys">
              <p class="text-sm quiet">
                Add a passkey on each device that you use, so that a lost device does not lock you out.
              </p>
              <ul>
                {data.map(({ id, created_at }, index) => (
                  <li
                    key={id}
                    class="border-b border-base-300 py-2 flex flex-wrap gap-x-3 items-center"
                    data-passkey={id}
                  >
                    <span class="grow">
                      Passkey {index + 1} <span class="quiet text-sm">created {time(created_at)}</span>
                    </span>
                    {data.length > 1 && (
                      <HoldButton
                        class="btn-sm min-h-9"
                        label={`Remove passkey ${index + 1}`}
                        onHeld={() =>
                          void act(`Remove passkey ${index + 1}`, () =>
                            callSession('DELETE', `passkeys/${id}`),
                          )
                        }
                      >
                        Remove
                      </HoldButton>
                    )}
                  </li>
                ))}
              </ul>
              <button class="btn btn-primary mt-3" onClick={() => void act('Add a passkey', add)}>
                Add a passkey
              </button>
              <OtherAddress />
            </Card>
          )
        }
      </Loaded>
    </>
  )
}
