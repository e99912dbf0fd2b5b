import type { Runtime } from '../../../protocol/model/runtime.ts'
import { ApiError } from '../api-error.ts'
import { BoundedMap } from '../bounded-map.ts'
import { base62 } from '../credentials/secrets.ts'
import type { Answer, Call } from '../http/answer.ts'
import { plainPage } from '../http/plain-page.ts'
import type { SiteRoute } from '../http/site-route.ts'
import { challengeOf, type CodeIssuer } from './code-flow.ts'

/** The people of the demo, by their buttons. Their subjects are `demo-owner` and so on; roles belong to subjects. */
export const demoPeople = ['Owner', 'Technician', 'Analyst', 'Customer'] as const
type DemoPerson = (typeof demoPeople)[number]
export const subjectOf = (person: DemoPerson): string => `demo-${person.toLowerCase()}`

const AUTHORIZE = '/demo/identity/authorize'
const TOKEN = '/demo/identity/code-token'
const CALLBACK = '/session/callback'
const CODE_MS = 60_000
/** Maximum number of codes that nobody has exchanged. */
const CODES = 1000

/** A person who has pressed a button, and the request for the code. */
interface Grant {
  person: DemoPerson
  nonce: string | null
  challenge: string | null
  redirectUri: string
  expiresAt: number
}

/** The sign-in page of the demo's issuer: everybody may be anybody. Production refuses to start with it. */
export function demoSignIn(options: {
  clientId: string
  runtime: Runtime
  /** Signs an ID token with these claims. */
  issue: (claims: { sub: string; email: string; nonce?: string }) => Promise<Record<string, unknown>>
}): Omit<CodeIssuer, 'verify'> & { site: readonly SiteRoute[]; paths: { authorize: string; token: string } } {
  const { clientId, runtime, issue } = options
  const { clock, random } = runtime
  const grants = new BoundedMap<Grant>(CODES)

  function grant(query: URLSearchParams, person: DemoPerson, redirectUri: string): string {
    const code = base62(random.bytes(32))
    const expiresAt = clock.monotonic() + CODE_MS
    const [nonce, challenge] = [query.get('nonce'), query.get('code_challenge')]
    grants.set(code, { person, nonce, challenge, redirectUri, expiresAt })
    return code
  }

  async function exchange(form: URLSearchParams): Promise<Record<string, unknown>> {
    const code = form.get('code') ?? ''
    const found = grants.get(code)
    grants.delete(code)
    const isRight =
      found !== undefined &&
      found.expiresAt > clock.monotonic() &&
      found.redirectUri === form.get('redirect_uri') &&
      (found.challenge === null || found.challenge === challengeOf(form.get('code_verifier') ?? ''))
    if (!isRight) throw new ApiError('invalid_token', 'The code is unknown, used or too old.')
    const sub = subjectOf(found.person)
    const email = `${found.person.toLowerCase()}@example.org`
    return issue({ sub, email, ...(found.nonce !== null && { nonce: found.nonce }) })
  }

  return {
    clientId,
    authorization: () => Promise.resolve({ endpoint: AUTHORIZE, scopes: undefined }),
    exchange,
    paths: { authorize: AUTHORIZE, token: TOKEN },
    site: [
      {
        method: 'GET',
        path: AUTHORIZE,
        trustsCaller: true,
        serve(call) {
          const { searchParams: query } = new URL(call.c.req.url)
          const redirectUri = requireOwnCallback(call, query.get('redirect_uri'))
          const person = demoPeople.find((one) => one === query.get('as'))
          if (!person) return Promise.resolve(pageFor(query))
          const target = new URL(redirectUri)
          target.searchParams.set('code', grant(query, person, redirectUri))
          target.searchParams.set('state', query.get('state') ?? '')
          return Promise.resolve({ status: 303, headers: { Location: target.href }, body: null })
        },
      },
      {
        method: 'POST',
        path: TOKEN,
        trustsCaller: true,
        async serve(call) {
          const body = JSON.stringify(await exchange(new URLSearchParams(await call.c.req.text())))
          return { status: 200, headers: { 'Content-Type': 'application/json' }, body }
        },
      },
    ],
  }
}

/** Throws `forbidden` for another address than the callback of the called service. */
function requireOwnCallback(call: Call, redirectUri: string | null): string {
  const url = redirectUri !== null && URL.canParse(redirectUri) ? new URL(redirectUri) : undefined
  if (redirectUri !== null && url?.host === call.header('Host') && url?.pathname.endsWith(CALLBACK))
    return redirectUri
  throw new ApiError('forbidden', `redirect_uri must be this service's ${CALLBACK}.`)
}

function pageFor(query: URLSearchParams): Answer<string> {
  const buttons = demoPeople.map((person) => {
    const own = new URLSearchParams(query)
    own.set('as', person)
    return `<a role="button" href="?${own.toString().replaceAll('&', '&amp;')}">${person}</a>`
  })
  return plainPage(
    'Sign in to the demo',
    `<p>Nobody needs a password here. Sign in as:</p>${buttons.join('')}`,
  )
}
