import {
  startAuthentication,
  startRegistration,
  type AuthenticationResponseJSON,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/browser'
import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { RoleName } from '../../../protocol/model/scopes.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { go } from './address.ts'
import { hubWords, roleWords } from './role-words.ts'
import { base, hasExpired, hasProvider } from './session.ts'
import { callSession, enter } from './sign-in.ts'

const post = <T,>(step: 'begin' | 'finish', body: object): Promise<T> =>
  callSession('POST', `/passkey/${step}`, body)

/** The first label of a passkey of this browser, for example “Firefox on Android, 1 Mar 2026”. */
export function deviceLabel(): string {
  const agent = navigator.userAgent
  const named = (words: readonly [RegExp, string][], other: string): string =>
    words.find(([word]) => word.test(agent))?.[1] ?? other
  const browser = named(
    [
      [/Edg/, 'Edge'],
      [/OPR/, 'Opera'],
      [/SamsungBrowser/, 'Samsung Internet'],
      [/Firefox|FxiOS/, 'Firefox'],
      [/Chrom|CriOS/, 'Chrome'],
      [/Safari/, 'Safari'],
    ],
    'Browser',
  )
  const platform = named(
    [
      [/iPhone/, 'iPhone'],
      [/iPad/, 'iPad'],
      [/Android/, 'Android'],
      [/Windows/, 'Windows'],
      [/Mac OS/, 'Mac'],
      [/CrOS/, 'ChromeOS'],
      [/Linux/, 'Linux'],
    ],
    'a device',
  )
  return `${browser} on ${platform}, ${new Date(epochMs()).toLocaleDateString('en', { dateStyle: 'medium' })}`
}

type Finished = AuthenticationResponseJSON | (RegistrationResponseJSON & { label: string })
async function finish(response: Finished): Promise<void> {
  await post('finish', response)
  await enter()
}

const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Browsers accept passkeys for names, not for addresses: `localhost`, not `127.0.0.1`. */
export function OtherAddress(): JSX.Element | null {
  if (location.hostname !== '127.0.0.1') return null
  const url = new URL(location.href)
  url.hostname = 'localhost'
  return (
    <p class="text-sm">
      Passkeys need a name in the address:{' '}
      <a class="link break-all" href={url.href}>
        {url.host}
      </a>
    </p>
  )
}

/** The page of a person who is not signed in. */
export function SignIn(): JSX.Element {
  async function signIn(): Promise<void> {
    try {
      const begun = await post<{ authentication: PublicKeyCredentialRequestOptionsJSON }>('begin', {})
      await finish(await startAuthentication({ optionsJSON: begun.authentication }))
    } catch (error) {
      say(`You are not signed in: ${sentence(error)}`, true)
    }
  }
  return (
    <div class="card bg-base-100 p-6 mx-auto max-w-md w-full grid gap-3 mt-8">
      <h1 class="text-xl font-semibold">Larder console</h1>
      {hasExpired.value ? (
        <p>
          Your session has ended. Sign in again, and come back to this page: it keeps what you have typed.
        </p>
      ) : (
        <p>Sign in to see the sales, problems and stock of your hubs.</p>
      )}
      {hasProvider.value && (
        <a
          class="btn btn-primary"
          target={hasExpired.value ? '_blank' : undefined}
          href={`${base}/session/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`}
        >
          Sign in
        </a>
      )}
      <button class={`btn ${hasProvider.value ? '' : 'btn-primary'}`} onClick={() => void signIn()}>
        Sign in with a passkey
      </button>
      <OtherAddress />
    </div>
  )
}

interface Invited {
  registration: PublicKeyCredentialCreationOptionsJSON
  invited: { name: string; role: RoleName; hubs: readonly number[] }
}

/** The page of a link that a person has received. */
export function InvitationPage(): JSX.Element {
  const [begun, setBegun] = useState<Invited | string | null>(null)
  useEffect(() => {
    post<Invited>('begin', { invitation: location.hash.slice(1) }).then(setBegun, (error: unknown) =>
      setBegun(sentence(error)),
    )
  }, [])
  async function accept({ registration }: Invited): Promise<void> {
    try {
      const created = await startRegistration({ optionsJSON: registration })
      await finish({ ...created, label: deviceLabel() })
      go('/today')
    } catch (error) {
      say(`The invitation is not accepted yet: ${sentence(error)}`, true)
    }
  }
  return (
    <div class="card bg-base-100 p-6 mx-auto max-w-md w-full grid gap-3 mt-8">
      <h1 class="text-xl font-semibold">Invitation to Larder</h1>
      {begun === null && (
        <p class="quiet" aria-busy="true">
          Reading …
        </p>
      )}
      {typeof begun === 'string' && (
        <>
          <p role="alert">{begun}</p>
          <a class="btn" href={`${base}/console`}>
            Go to the sign-in
          </a>
        </>
      )}
      {begun !== null && typeof begun !== 'string' && (
        <>
          <p>
            Welcome, <b class="break-words">{begun.invited.name}</b>. Your role at{' '}
            {hubWords(begun.invited.hubs)}:
          </p>
          <p>{roleWords[begun.invited.role]}.</p>
          <p>A passkey replaces a password. Your telephone, computer or security key keeps it.</p>
          <button class="btn btn-primary" onClick={() => void accept(begun)}>
            Create a passkey
          </button>
          <OtherAddress />
        </>
      )}
    </div>
  )
}
