import { callProgram } from '../../../protocol/ui/call-program.ts'
import { pause } from '../../../protocol/ui/live.ts'
import { AskError, base, csrf, hasExpired, hasProvider, session, type Session } from './session.ts'

const RETRY_MS = 2_000

/** A call about the session of this browser, by the path below `/session`. Throws `AskError`. */
export async function callSession<T>(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: '' | `/${string}`,
  body?: object,
): Promise<T> {
  const result = await callProgram<T>(`${base}/session${path}`, { method, body, csrf: csrf() })
  if (!result.ok) throw new AskError(result.error)
  return result.data
}

/** Reads who is signed in, until the service answers. */
export async function enter(): Promise<void> {
  for (;;) {
    try {
      const known = await callSession<Session>('GET', '')
      hasProvider.value = known.can_sign_in
      return setSession(known.kind === 'person' ? known : null)
    } catch {
      // The service is away.
    }
    await pause(RETRY_MS)
  }
}

function setSession(known: Session | null): void {
  hasExpired.value = false
  session.value = known
}

/** Notices that the person has signed in again, in another tab. */
export async function rejoin(): Promise<void> {
  const known = await callSession<Session>('GET', '').catch(() => null)
  if (known?.kind === 'person') setSession(known)
}

/** Ends the session. Throws if the service has not ended it: the person is still signed in. */
export async function signOut(): Promise<void> {
  await callSession('DELETE', '')
  setSession(null)
}
