import { signal } from '@preact/signals'
import { createClient, type Api, type Failure } from '../../../protocol/client/client.ts'
import type { Args, Endpoint, ItemOf, Paged } from '../../../protocol/client/types.ts'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { pictureAddress } from '../../../protocol/ui/picture-address.ts'
import { saveText } from '../../../protocol/ui/save-text.ts'
import { roleScopes, type RoleName, type Scope } from '../../../protocol/model/scopes.ts'

/** Address of the service, without a slash at its end. The files of this page stand one step below it. */
export const base = new URL(/* @vite-ignore */ '..', import.meta.url).href.replace(/\/$/, '')

/** The person who is signed in. The browser keeps the session in a cookie that no script can read. */
export interface Session {
  kind: 'none' | 'guest' | 'person'
  email: string | null
  name: string | null
  /** Whether people can sign in at an identity provider. */
  can_sign_in: boolean
  roles: readonly { role: RoleName; hubs: readonly number[] | '*' }[]
  /** Sent with each write: a foreign page does not know it. */
  csrf: string | null
}

/** Undefined before the service has answered; null if nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined)
/** Whether people can sign in at an identity provider, also without a passkey. */
export const hasProvider = signal(false)
/** When the service stopped answering, as a time for people; null while it answers. */
export const awaySince = signal<string | null>(null)

/** Whether a role of the person grants a scope, at a hub or at any hub. The service decides; the page only hides. */
export const can = (scope: Scope, hub?: number): boolean =>
  (session.value?.roles ?? []).some(
    ({ role, hubs }) =>
      roleScopes[role].includes(scope) && (hub === undefined || hubs === '*' || hubs.includes(hub)),
  )

export const csrf = (): string => session.peek()?.csrf ?? ''

/** Sends a call with the session's cookie. */
export async function send(input: string, init: RequestInit): Promise<Response> {
  try {
    const answer = await fetch(input, init)
    if (answer.status === 401) session.value = null
    awaySince.value = answer.status === 503 ? (awaySince.peek() ?? clockTime()) : null
    return answer
  } catch (error) {
    if (!init.signal?.aborted) awaySince.value ??= clockTime()
    throw error
  }
}

const clockTime = (): string => new Date(epochMs()).toLocaleTimeString('en', { timeStyle: 'short' })

export const client = createClient({
  baseUrl: base,
  csrf,
  // The page asks again, and shows at once that the service is away.
  retry: { tries: 2 },
  timeoutMs: 20_000,
  system: { fetch: send },
})

/** A refused or failed call, with the sentence of the service. */
export class AskError extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.status === 0 ? 'The service does not answer.' : failure.message)
    this.failure = failure
  }

  /** Whether there is no such thing, or the person may not see it. */
  get isMissing(): boolean {
    return this.failure.status === 404 || this.failure.code === 'hub_access_denied'
  }
}

/** Returns the answer of a call. Throws `AskError`. */
export async function ask<E extends Endpoint>(endpoint: E, ...args: Args<E>): Promise<Api[E]['answer']> {
  const result = await client.call(endpoint, ...args)
  if (!result.ok) throw new AskError(result.error)
  return result.data
}

/** All items of a list, at most `most`. */
export async function all<E extends Paged>(endpoint: E, args: Args<E>[0], most = 1000): Promise<ItemOf<E>[]> {
  const found: ItemOf<E>[] = []
  for await (const item of client.items(endpoint, ...([args] as Args<E>))) {
    found.push(item)
    if (found.length >= most) break
  }
  return found
}

/** Saves the CSV of a report as a file. */
export async function saveCsv(path: string, name: string): Promise<void> {
  const answer = await send(`${base}/api/v1${path}`, { headers: { Accept: 'text/csv' } })
  if (!answer.ok) throw new Error(`The service answers ${answer.status}.`)
  saveText(await answer.text(), name, 'text/csv')
}

export const imageAt = (address: string): string => pictureAddress(address, base)
