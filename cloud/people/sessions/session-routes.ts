import { z } from 'zod'
import type { ErrorBody } from '../../../protocol/contract/errors.ts'
import { rateClasses, type Rate } from '../../../protocol/contract/route.ts'
import { ApiError } from '../../platform/api-error.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { IdentityCredential } from '../../platform/credentials/credential.ts'
import type { VerifiedIdentity } from '../../platform/credentials/identity-token.ts'
import { listRoles } from '../../platform/credentials/roles.ts'
import { digestOf } from '../../platform/credentials/secrets.ts'
import {
  csrfOf,
  endSession,
  readSession,
  startSession,
  type Session,
} from '../../platform/credentials/sessions.ts'
import type { Answer, Call } from '../../platform/http/answer.ts'
import { cookieOf, cookieWith, isOwnPage, sessionSecretOf } from '../../platform/http/session-cookie.ts'
import { escapeHtml, plainPage } from '../../platform/http/plain-page.ts'
import type { SiteRoute } from '../../platform/http/site-route.ts'
import {
  beginSignIn,
  finishSignIn,
  PendingSignIn,
  type CodeIssuer,
} from '../../platform/identity/code-flow.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import { bootstrapGuest } from '../users/bootstrap.ts'
import { requireNothingOpen } from '../users/open-business.ts'
import { adoptGuest } from './adopt-guest.ts'
import {
  addPasskey,
  labelPasskey,
  PasskeyLabel,
  PendingPasskey,
  passkeyOptions,
  passkeysOf,
  provenPerson,
  removePasskey,
} from './passkeys.ts'

export interface SessionParts {
  context: CloudContext
  /** Absent: nobody can sign in. */
  issuer: CodeIssuer | undefined
  /** The public URL of the service. Absent: the address of each call. */
  publicUrl: string | undefined
}

/** The time in which a person signs in at the issuer. */
const SIGN_IN_MS = 600_000
const TOO_LATE = 'The sign-in has taken too long, or began in another browser.'

/** The session of the browser, as its pages read it. */
export interface SessionAnswer {
  kind: 'none' | 'guest' | 'person'
  /** Writes with the session need it in the header `X-CSRF-Token`. */
  csrf: string | null
  /** The customer, if there is one yet. */
  user_id: number | null
  email: string | null
  /** Name of a person who signs in with a passkey. */
  name: string | null
  /** `[{role, hubs}]`: hub ids, or `*`. */
  roles: { role: string; hubs: unknown }[]
  /** Whether people can sign in. */
  can_sign_in: boolean
}

/** Sessions of browsers: who it is, a guest, sign-in and sign-out. They are for the service's own pages. */
export function sessionRoutes(parts: SessionParts): SiteRoute[] {
  const { guestsPerMinute, signInsPerMinute } = parts.context.settings
  const guest: Rate = { ...rateClasses.guest, requests: guestsPerMinute }
  const signIn: Rate = { requests: signInsPerMinute, by: 'address', shared: 'sign-ins' }
  const pages: Rate = { ...rateClasses.open, shared: 'sessions' }
  const failed: SiteRoute['failed'] = (call, answer) => failedSignIn(parts, call, answer)
  return [
    { method: 'GET', path: '/session', rate: pages, serve: (call) => show(parts, call) },
    { method: 'DELETE', path: '/session', rate: pages, serve: (call) => signOut(parts, call) },
    { method: 'POST', path: '/session/guest', rate: guest, serve: (call) => becomeGuest(parts, call) },
    { method: 'GET', path: '/session/sign-in', rate: signIn, failed, serve: (call) => begin(parts, call) },
    { method: 'GET', path: '/session/callback', rate: signIn, failed, serve: (call) => finish(parts, call) },
    {
      method: 'POST',
      path: '/session/passkey/begin',
      rate: signIn,
      serve: (call, readBody) => beginPasskey(parts, call, readBody),
    },
    {
      method: 'POST',
      path: '/session/passkey/finish',
      rate: signIn,
      serve: (call, readBody) => finishPasskey(parts, call, readBody),
    },
    { method: 'GET', path: '/session/passkeys', rate: pages, serve: (call) => listPasskeys(parts, call) },
    {
      method: 'PATCH',
      path: '/session/passkeys/:id',
      rate: pages,
      serve: async (call, readBody) => {
        const session = await writer(parts, call)
        const { label } = bodyOf(await readBody(), z.strictObject({ label: PasskeyLabel }))
        await labelPasskey(parts.context, session, { id: call.c.req.param('id') ?? '', label })
        return { status: 204, headers: {}, body: null }
      },
    },
    {
      method: 'DELETE',
      path: '/session/passkeys/:id',
      rate: signIn,
      serve: async (call) => {
        await removePasskey(parts.context, await freshWriter(parts, call), call.c.req.param('id') ?? '')
        return { status: 204, headers: {}, body: null }
      },
    },
  ]
}

const json = (body: unknown, cookie?: string): Answer<string> => ({
  status: 200,
  headers: { 'Content-Type': 'application/json', ...(cookie !== undefined && { 'Set-Cookie': cookie }) },
  body: JSON.stringify(body),
})

const redirect = (to: string, cookie: string): Answer<null> => ({
  status: 303,
  headers: { Location: to, 'Set-Cookie': cookie },
  body: null,
})

/** The session of the cookie, if it has not ended. */
async function current(
  { context }: SessionParts,
  call: Call,
): Promise<{ secret: string; session: Session } | undefined> {
  const secret = cookieOf(call, context, 'session')
  const session = secret === undefined ? undefined : await readSession(context, digestOf(secret))
  return secret === undefined || !session ? undefined : { secret, session }
}

async function answerFor(
  { context, issuer }: SessionParts,
  found: { secret: string; session: Pick<Session, 'identity' | 'claims'> } | undefined,
): Promise<SessionAnswer> {
  const can_sign_in = issuer !== undefined
  if (!found)
    return { kind: 'none', csrf: null, user_id: null, email: null, name: null, roles: [], can_sign_in }
  const { identity, claims } = found.session
  const q = context.db.kysely
  const user = await q.selectFrom('users').select('id').where('identity', '=', identity).executeTakeFirst()
  const roles = await listRoles(q, identity)
  const passkey = await q
    .selectFrom('passkeys')
    .select('name')
    .where('identity', '=', identity)
    .executeTakeFirst()
  return {
    kind: claims.anonymous ? 'guest' : 'person',
    csrf: csrfOf(found.secret),
    user_id: user?.id ?? null,
    email: claims.email,
    name: passkey?.name ?? null,
    roles: roles.map(({ role, hubs }) => ({ role, hubs })),
    can_sign_in,
  }
}

/** Throws `forbidden` for a page of another origin. */
function requireOwnPage(call: Call): void {
  if (!isOwnPage(call)) throw new ApiError('forbidden', 'Only a page of this service may call this address.')
}

async function show(parts: SessionParts, call: Call): Promise<Answer<string>> {
  requireOwnPage(call)
  const found = await current(parts, call)
  // Each visit renews the cookie, because browsers limit its time.
  const cookie = found && cookieWith(parts.context, 'session', found.secret)
  return json(await answerFor(parts, found), cookie)
}

/** A guest's session is the only access to the guest's orders and money, so it stays while any are open. */
async function signOut(parts: SessionParts, call: Call): Promise<Answer<null>> {
  requireOwnPage(call)
  const { context } = parts
  const found = await current(parts, call)
  if (found?.session.claims.anonymous) await requireNothingOpen(context.db.kysely, found.session.identity)
  const secret = sessionSecretOf(call, context)
  if (secret !== undefined) await endSession(context.db.kysely, secret)
  return { status: 204, headers: { 'Set-Cookie': cookieWith(context, 'session', '') }, body: null }
}

/** One guest for each browser: a browser with a session keeps it. */
async function becomeGuest(parts: SessionParts, call: Call): Promise<Answer<string>> {
  requireOwnPage(call)
  const found = await current(parts, call)
  const { context } = parts
  if (found) {
    // The user of an old guest without orders may have been deleted.
    if (found.session.claims.anonymous) await bootstrapGuest(context, credentialOf(found.session))
    return json(await answerFor(parts, found))
  }
  const guest = guestIdentity(context)
  await bootstrapGuest(context, credentialOf(guest))
  const secret = await startSession(context, context.db.kysely, guest)
  return json(await answerFor(parts, { secret, session: guest }), cookieWith(context, 'session', secret))
}

const guestIdentity = ({ runtime }: CloudContext): VerifiedIdentity => ({
  identity: `guest-${randomHex(runtime.random, 16)}`,
  claims: { phoneNumber: null, email: null, emailVerified: false, anonymous: true, roles: [] },
})

export const credentialOf = ({ identity, claims }: VerifiedIdentity): IdentityCredential => ({
  kind: 'identity',
  actor: `identity:${identity}`,
  identity,
  claims,
})

async function begin({ context, issuer, publicUrl }: SessionParts, call: Call): Promise<Answer<null>> {
  if (!issuer) throw new ApiError('not_found', 'Nobody can sign in here: IDENTITY_CLIENT_ID is not set.')
  const { runtime, sealer } = context
  const url = new URL(call.c.req.url)
  const { url: to, pending } = await beginSignIn(issuer, runtime.random, {
    returnTo: ownPath(url.searchParams.get('return_to')),
    redirectUri: `${publicUrl ?? url.origin}/session/callback`,
    expiresAt: runtime.clock.now() + SIGN_IN_MS,
  })
  return redirect(
    to,
    cookieWith(context, 'sign-in', sealer.seal('sign-in', JSON.stringify(pending)), SIGN_IN_MS / 1000),
  )
}

/** A path of this service. Any other address is replaced, so that no link leads to a foreign page after a sign-in. */
function ownPath(given: string | null): string {
  const base = 'http://larder.invalid'
  if (given === null || !given.startsWith('/') || !URL.canParse(given, base)) return '/console'
  const { origin, pathname, search } = new URL(given, base)
  // A browser reads two slashes as the start of a host: "/..//host" has such a path.
  return origin === base && !pathname.startsWith('//') ? pathname + search : '/console'
}

/** Starts a session with a new cookie: a cookie from before the sign-in opens nothing of the person's. */
async function finish(parts: SessionParts, call: Call): Promise<Answer<null>> {
  const { issuer, publicUrl } = parts
  const pending = pendingOf(parts, call, 'sign-in', PendingSignIn)
  if (!issuer || !pending) throw new ApiError('invalid_token', TOO_LATE)
  const { searchParams: answer } = new URL(call.c.req.url)
  const back = rootOf(publicUrl) + pending.returnTo
  // The person pressed Cancel.
  if (answer.get('error') !== null) return redirect(back, cookieWith(parts.context, 'sign-in', ''))
  const person = await finishSignIn(issuer, pending, answer)
  return redirect(back, cookieWith(parts.context, 'session', await enter(parts, call, person)))
}

/** Starts the session of a person, and ends the one from before the sign-in. Returns the secret of the cookie. */
async function enter(parts: SessionParts, call: Call, person: VerifiedIdentity): Promise<string> {
  const { context } = parts
  const before = await current(parts, call)
  if (before?.session.claims.anonymous) await adoptGuest(context, before.session, credentialOf(person))
  return context.db.transact(async (tx) => {
    if (before) await endSession(tx.q, before.secret)
    return startSession(context, tx.q, person)
  })
}

/** The path at which a proxy mounts the service. */
const rootOf = (publicUrl: string | undefined): string =>
  publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')

const siteOf = ({ publicUrl }: SessionParts, call: Call): URL => new URL(publicUrl ?? call.c.req.url)

async function beginPasskey(
  parts: SessionParts,
  call: Call,
  readBody: () => Promise<string>,
): Promise<Answer<string>> {
  requireOwnPage(call)
  const wanted = z.object({ invitation: z.string().max(100).optional(), add: z.boolean().optional() })
  const { invitation, add = false } = bodyOf(await readBody(), wanted)
  const { runtime, sealer } = parts.context
  const identity = add ? (await freshWriter(parts, call)).identity : undefined
  const { answer, pending } = await passkeyOptions(parts.context, siteOf(parts, call), invitation, identity)
  const begun: PendingPasskey = { ...pending, expiresAt: runtime.clock.now() + SIGN_IN_MS }
  return json(
    answer,
    cookieWith(parts.context, 'sign-in', sealer.seal('passkey', JSON.stringify(begun)), SIGN_IN_MS / 1000),
  )
}

async function finishPasskey(
  parts: SessionParts,
  call: Call,
  readBody: () => Promise<string>,
): Promise<Answer<string>> {
  requireOwnPage(call)
  const wanted = z.looseObject({ id: z.string(), label: PasskeyLabel.nullable().default(null) })
  const response = bodyOf(await readBody(), wanted)
  const pending = pendingOf(parts, call, 'passkey', PendingPasskey)
  if (!pending) throw new ApiError('invalid_token', TOO_LATE)
  const { identity } = pending
  if (identity !== undefined) {
    if ((await freshWriter(parts, call)).identity !== identity) throw new ApiError('invalid_token', TOO_LATE)
    await addPasskey(parts.context, siteOf(parts, call), { ...pending, identity }, response)
    return json({}, cookieWith(parts.context, 'sign-in', ''))
  }
  const person = await provenPerson(parts.context, siteOf(parts, call), pending, response)
  return json({}, cookieWith(parts.context, 'session', await enter(parts, call, person)))
}

async function listPasskeys(parts: SessionParts, call: Call): Promise<Answer<string>> {
  requireOwnPage(call)
  const found = await current(parts, call)
  const known = found ? await passkeysOf(parts.context.db.kysely, found.session.identity) : []
  return json({
    data: known.map(({ id, label, created_at }) => ({ id, label, created_at: timestamp(created_at) })),
  })
}

/** The session of a write of this service's own page. Throws `forbidden`, `authentication_required`. */
async function writer(parts: SessionParts, call: Call): Promise<Session> {
  requireOwnPage(call)
  const secret = sessionSecretOf(call, parts.context)
  const session = secret === undefined ? undefined : await readSession(parts.context, digestOf(secret))
  if (!session) throw new ApiError('authentication_required')
  return session
}

/**
 * The thief of a session must neither add a passkey, which would outlive the session, nor remove one, which would lock the person
 * out: the sign-in must be recent.
 */
async function freshWriter(parts: SessionParts, call: Call): Promise<Session> {
  const session = await writer(parts, call)
  if (session.createdAt + SIGN_IN_MS <= parts.context.runtime.clock.now())
    throw new ApiError(
      'forbidden',
      'You signed in more than 10 minutes ago. Sign out, sign in with a passkey, and try again.',
    )
  return session
}

/** The JSON body of a page's call. Throws `invalid_json`, `value_error`. */
function bodyOf<T>(text: string, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    throw new ApiError('invalid_token', 'The page has sent something that the service does not expect.')
  }
}

/** The page of a failed sign-in: the sentence, and the way back. */
function failedSignIn(
  parts: SessionParts,
  call: Call,
  { status, headers, body }: Answer<string>,
): Answer<string> {
  const { error } = JSON.parse(body) as ErrorBody
  const pending = pendingOf(parts, call, 'sign-in', PendingSignIn)
  const to = ownPath(pending?.returnTo ?? new URL(call.c.req.url).searchParams.get('return_to'))
  const root = rootOf(parts.publicUrl)
  const link = (href: string, text: string) =>
    `<a role="button" href="${escapeHtml(root + href)}">${text}</a>`
  const page = plainPage(
    'You are not signed in',
    `<p>${escapeHtml(error.message)}</p>${link(`/session/sign-in?return_to=${encodeURIComponent(to)}`, 'Try again')}${link(to, 'Back to the page')}`,
    status,
  )
  const { 'Retry-After': retryAfter } = headers
  return {
    ...page,
    headers: { ...page.headers, ...(retryAfter !== undefined && { 'Retry-After': retryAfter }) },
  }
}

/** The sign-in that has begun in this browser. Undefined if it took too long, or was answered. */
function pendingOf<T extends { expiresAt: number }>(
  { context }: SessionParts,
  call: Call,
  purpose: 'sign-in' | 'passkey',
  schema: z.ZodType<T>,
): T | undefined {
  const { sealer, runtime } = context
  try {
    const pending = schema.parse(JSON.parse(sealer.open(purpose, cookieOf(call, context, 'sign-in') ?? '')))
    return pending.expiresAt > runtime.clock.now() ? pending : undefined
  } catch {
    // There is no cookie, or somebody changed it.
    return undefined
  }
}
