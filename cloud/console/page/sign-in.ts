import { pause } from '../../../protocol/ui/live.ts'
import { base, csrf, hasProvider, send, session, type Session } from './session.ts'

const RETRY_MS = 2_000

/** Reads who is signed in, until the service answers. */
export async function enter(): Promise<void> {
  for (;;) {
    try {
      const answer = await fetch(`${base}/session`)
      if (answer.ok) {
        const known = (await answer.json()) as Session
        hasProvider.value = known.can_sign_in
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
