import type { JSX } from 'preact'
import { pause } from '../../../protocol/ui/live.ts'
import { base, csrf, send, session, type Session } from './session.ts'

const RETRY_MS = 2_000

/** Reads who is signed in, until the service answers. */
export async function enter(): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(`${base}/session`)
      if (answer.ok) {
        const known = (await answer.json()) as Session
        return void (session.value = known.kind === 'person' ? known : null)
      }
    } catch {
      // The service is away.
    }
    await pause(RETRY_MS)
  }
}

export async function signOut(): Promise<void> {
  await send(`${base}/session`, { method: 'DELETE', headers: { 'X-CSRF-Token': csrf() } })
  session.value = null
}

/** The page of a person who is not signed in. */
export const SignIn = (): JSX.Element => (
  <div class="card bg-base-100 p-6 mx-auto max-w-md w-full grid gap-3 mt-8">
    <h1 class="text-xl font-semibold">Larder console</h1>
    <p>Sign in to see the sales, problems and stock of your hubs.</p>
    <a
      class="btn btn-primary"
      href={`${base}/session/sign-in?return_to=${encodeURIComponent(location.pathname + location.search)}`}
    >
      Sign in
    </a>
  </div>
)
