import { signal } from '@preact/signals'
import {
  createClient,
  LarderError,
  type Api,
  type Client,
  type Failure,
  type Result,
} from '../../../protocol/client/client.ts'
import { takesKey } from '../../../protocol/client/retry.ts'
import { surroundings } from '../../../protocol/client/system.ts'
import type { Args, ClientOptions, Endpoint, ItemOf, Paged } from '../../../protocol/client/types.ts'
import { BrowserStorage } from '../../../protocol/ui/browser-storage.ts'
import { sentenceOf } from '../../../protocol/ui/call-program.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { epochMs } from '../../../protocol/ui/page-clock.ts'
import { pictureAddress } from '../../../protocol/ui/picture-address.ts'
import { isOutcome, Unanswered } from '../../../protocol/ui/unanswered.ts'
import { roleScopes, type RoleName, type Scope } from '../../../protocol/model/scopes.ts'
import { watchedFetch } from './watched-fetch.ts'

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
/** Whether the service has ended the session. The page keeps typed texts until the next sign-in. */
export const hasExpired = signal(false)
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

export const isSignedIn = (): boolean => !!session.value && !hasExpired.value

export const csrf = (): string => (hasExpired.peek() ? '' : (session.peek()?.csrf ?? ''))

const clockTime = (): string => new Date(epochMs()).toLocaleTimeString('en', { timeStyle: 'short' })

type Patience = Pick<ClientOptions, 'retry' | 'timeoutMs'>

/** A client of the service with the session of this browser, which is in a cookie. */
export const connect = (patience: Patience): Client =>
  createClient({
    baseUrl: base,
    csrf,
    ...patience,
    system: {
      fetch: watchedFetch({
        away: () => void (awaySince.value ??= clockTime()),
        present: () => void (awaySince.value = null),
        signedOut() {
          if (session.peek()) hasExpired.value = true
          else session.value = null
        },
      }),
    },
  })

/** The page asks again, and shows at once that the service is away. Uploads and slow controls have more time. */
export const client = connect({ retry: { tries: 2 }, timeoutMs: 20_000 })

const unanswered = new Unanswered(new BrowserStorage(() => sessionStorage), epochMs)

/** A refused or failed call, with the sentence of the service. */
export class AskError extends Error {
  readonly failure: Failure
  constructor(failure: Failure, more = '') {
    super(`${sentenceOf(failure, 'The service')}${more}`)
    this.failure = failure
  }

  /** Whether there is no such thing, or the person may not see it. */
  get isMissing(): boolean {
    return this.failure.status === 404 || this.failure.code === 'hub_access_denied'
  }
}

const asAskError = (error: unknown): unknown =>
  error instanceof LarderError ? new AskError(error.failure) : error

/** Returns the answer of a call. Throws `AskError`. */
export async function ask<E extends Endpoint>(endpoint: E, ...args: Args<E>): Promise<Api[E]['answer']> {
  const [method = '', path = ''] = endpoint.split(' ')
  const [input = {}] = args
  if (!takesKey(method, path)) return answerOf(await client.call(endpoint, ...args))
  const { email, name } = session.peek() ?? {}
  const { result, isRepeated } = await unanswered.send(
    [email, name, endpoint, input],
    surroundings.newKey,
    (idempotencyKey) => client.call(endpoint, ...([{ ...input, idempotencyKey }] as Args<E>)),
  )
  if (result.ok && isRepeated) say('An earlier try had no answer. Both tries together are done once.')
  const isOpen = !result.ok && !isOutcome(result.error)
  return answerOf(result, isOpen ? ' It is not known whether it is done. Try again: it is done once.' : '')
}

function answerOf<Data>(result: Result<Data>, more?: string): Data {
  if (!result.ok) throw new AskError(result.error, more)
  return result.data
}

/** All items of a list, at most `most`. Throws `AskError`. */
export async function all<E extends Paged>(endpoint: E, args: Args<E>[0], most = 1000): Promise<ItemOf<E>[]> {
  const found: ItemOf<E>[] = []
  try {
    for await (const item of client.items(endpoint, ...([args] as Args<E>))) {
      found.push(item)
      if (found.length >= most) break
    }
  } catch (error) {
    throw asAskError(error)
  }
  return found
}

/** The rows of a report as CSV. */
export async function csv<E extends Endpoint>(endpoint: E, ...args: Args<E>): Promise<string> {
  const parts: string[] = []
  try {
    for await (const part of client.csv(endpoint, ...args)) parts.push(part)
  } catch (error) {
    throw asAskError(error)
  }
  return parts.join('')
}

export const imageAt = (address: string): string => pictureAddress(address, base)
