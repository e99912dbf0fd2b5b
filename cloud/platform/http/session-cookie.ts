import { generateCookie } from 'hono/cookie'
import { parse } from 'hono/utils/cookie'
import { ApiError } from '../api-error.ts'
import { markOf } from '../cells.ts'
import { csrfOf } from '../credentials/sessions.ts'
import { digestOf, isSameDigest } from '../credentials/secrets.ts'
import type { CloudSettings } from '../settings/limits.ts'
import type { Call } from './answer.ts'

/**
 * The cookie of a session. A browser accepts the prefix `__Host-` only with `Secure`, for this host alone. Chromium and
 * Firefox accept `Secure` at http://localhost and http://127.0.0.1, too.
 */
const NAME = '__Host-larder'

/** The cookie of a session, and the cookie of a sign-in that has begun. */
type Kind = 'session' | 'sign-in'
interface OfCell {
  settings: Pick<CloudSettings, 'cell'>
}

/** Cells share a host and its cookies, so each cell has its own names. */
function nameOf({ settings: { cell } }: OfCell, kind: Kind): string {
  const name = cell === 0 ? NAME : `${NAME}-${markOf(cell)}`
  return kind === 'session' ? name : `${name}-sign-in`
}

/** Longest time of a cookie that browsers accept (RFC 6265bis §5.5): the service ends sessions earlier. */
const LONGEST_S = 400 * 86_400

/** `Set-Cookie`. An empty value deletes the cookie. */
export const cookieWith = (context: OfCell, kind: Kind, value: string, maxAgeS = LONGEST_S): string =>
  generateCookie(nameOf(context, kind), value, {
    path: '/',
    secure: true,
    httpOnly: true,
    sameSite: 'Lax',
    maxAge: value === '' ? 0 : maxAgeS,
  })

/** The value of a cookie. Undefined if the call has none. */
export function cookieOf(call: Pick<Call, 'header'>, context: OfCell, kind: Kind): string | undefined {
  const name = nameOf(context, kind)
  const header = call.header('Cookie')
  return header === undefined ? undefined : parse(header, name)[name]
}

/** Whether a page of this service makes the call (Fetch Metadata). Programs and pages of other origins do not. */
export const isOwnPage = (call: Pick<Call, 'header'>): boolean =>
  call.header('Sec-Fetch-Site') === 'same-origin'

/**
 * The secret of the call's session. Undefined if there is none, or if another origin makes the call. Throws `forbidden`
 * if a write lacks the header `X-CSRF-Token`.
 */
export function sessionSecretOf(call: Pick<Call, 'header' | 'c'>, context: OfCell): string | undefined {
  const secret = cookieOf(call, context, 'session')
  if (secret === undefined || !isOwnPage(call)) return undefined
  const isRead = call.c.req.method === 'GET' || call.c.req.method === 'HEAD'
  const sent = call.header('X-CSRF-Token') ?? ''
  if (!isRead && !isSameDigest(digestOf(sent), digestOf(csrfOf(secret))))
    throw new ApiError('forbidden', 'A write with the cookie of a session needs the header X-CSRF-Token.')
  return secret
}
