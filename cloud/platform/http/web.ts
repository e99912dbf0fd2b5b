import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Context } from 'hono'
import { accepts } from 'hono/accepts'
import { cors } from 'hono/cors'
import type { Route } from '../../../protocol/contract/route.ts'
import { hostCheck } from '../../../protocol/model/allowed-hosts.ts'
import { BoundedMap } from '../bounded-map.ts'
import type { Answer, Call, Headers } from './answer.ts'

/** Headers for browsers and caches: who may read an answer, how it is cached, and how it is compressed. */

/** Headers of every answer. Pages add more. */
export const securityHeaders = {
  // Browsers must not guess another type for a stored file than its declared type.
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
} as const

/** Request headers that a page of another origin may send. */
const SENT = [
  'Authorization',
  'X-API-Key',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'Last-Event-ID',
]
/** Response headers that it may read. */
const READ = [
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'Retry-After',
  'X-Total-Count',
  'Link',
  'ETag',
  'Idempotent-Replayed',
  'X-Incomplete',
  'Allow',
]
/** How long a browser caches this permission. */
const PREFLIGHT_SECONDS = 600

/**
 * Allows calls from pages of these origins. A page sets its credentials in headers, never in cookies. A foreign page
 * therefore cannot use credentials that the browser has.
 */
export function crossOrigin(
  origins: readonly string[],
): (c: Context, answer: () => Promise<Response>) => Promise<Response> {
  const allow = cors({
    origin: origins.includes('*') ? '*' : [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders: SENT,
    exposeHeaders: READ,
    maxAge: PREFLIGHT_SECONDS,
  })
  return async (c, answer) => {
    const isOther = c.req.method === 'OPTIONS' && c.req.header('Access-Control-Request-Method') === undefined
    if (isOther) return answer()
    const preflight = await allow(c, async () => {
      c.res = await answer()
    })
    return preflight instanceof Response ? preflight : c.res
  }
}

/** Checks `Host` and `Origin` of a call against the names of this service and the allowed origins. */
export function ownPageCheck(
  names: readonly string[],
  origins: readonly string[],
): (call: Pick<Call, 'header'>) => boolean {
  const isAllowedHost = hostCheck(names)
  return (call) => {
    const host = call.header('Host')
    const origin = call.header('Origin')
    if (!isAllowedHost(host)) return false
    if (origin === undefined || origins.includes('*') || origins.includes(origin.toLowerCase())) return true
    return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase()
  }
}

/** Adds an ETag to an answer. Omits the body if the caller's copy is current (RFC 9110 §13). */
export function validated(route: Route, answer: Answer, call: Call): Answer {
  if (route.validated === undefined || answer.status !== 200 || typeof answer.body !== 'string') return answer
  const etag = answer.headers['ETag'] ?? etagOf(answer.body)
  const headers = {
    ...answer.headers,
    ETag: etag,
    // Caches revalidate before each use, so that stock and prices are never outdated.
    'Cache-Control': `${route.validated}, no-cache`,
    // A 304 carries the `Vary` of the 200 that it replaces.
    Vary: route.validated === 'private' ? `X-API-Key, Authorization, ${CODING}` : CODING,
  }
  const ifNoneMatch = call.header('If-None-Match')
  if (ifNoneMatch === undefined || !matchesTag(ifNoneMatch, etag)) return { ...answer, headers }
  const { 'Content-Type': _, ...kept } = headers as Record<string, string>
  return { status: 304, headers: kept, body: '' }
}

/** Weak, because the same answer is sent plain and compressed. */
export const etagOf = (text: string): string => `W/"${hash('sha256', text, 'base64url').slice(0, 22)}"`

/** Whether an `If-None-Match` contains the tag. */
export const matchesTag = (header: string, etag: string): boolean =>
  header
    .split(',')
    .map((each) => each.trim())
    .some((each) => each === '*' || plainTag(each) === plainTag(etag))

const plainTag = (tag: string): string => tag.replace(/^W\//, '')

/** An answer that is sent plain or compressed varies by this header. */
const CODING = 'Accept-Encoding'
/** Compressing a smaller answer costs more than sending it. */
const LEAST_BYTES = 1024
const COMPRESSIBLE = /^(application\/json|text\/(html|csv|css|javascript|markdown))\b/
const inBackground = promisify(gzip)
/** Cache of large answers that are equal for all callers: the description of the API. */
const publicBytes = new BoundedMap<Promise<Uint8Array<ArrayBuffer>>>(4)
const LARGE_BYTES = 256 * 1024

function zipped(
  body: string,
  { ETag: etag, 'Cache-Control': caching }: Headers,
): Promise<Uint8Array<ArrayBuffer>> {
  if (body.length < LARGE_BYTES || etag === undefined || !caching?.startsWith('public'))
    return inBackground(body)
  const known = publicBytes.get(etag)
  if (known) return known
  const made: Promise<Uint8Array<ArrayBuffer>> = inBackground(body)
  publicBytes.set(etag, made)
  return made
}

/**
 * Compresses a text answer to a read if the caller accepts it. The answer to a POST may contain a secret (a token, a
 * key, a webhook's secret). Beside text of the caller's, its compressed length would reveal it (BREACH). A stream is
 * sent uncompressed.
 */
export function compressed(
  { c }: Call,
  answer: Answer,
): Answer | Promise<Answer<Answer['body'] | Uint8Array<ArrayBuffer>>> {
  const { body, headers, status } = answer
  if (c.req.method !== 'GET' || status !== 200 || typeof body !== 'string') return answer
  if (body.length < LEAST_BYTES || !COMPRESSIBLE.test(headers['Content-Type'] ?? '')) return answer
  const varies = headers['Vary']?.includes(CODING)
    ? headers['Vary']
    : [headers['Vary'], CODING].filter(Boolean).join(', ')
  const varied = { ...headers, Vary: varies }
  const coding = accepts(c, { header: CODING, supports: ['gzip'], default: 'identity' })
  if (coding !== 'gzip') return { ...answer, headers: varied }
  return zipped(body, headers).then((bytes) => ({
    status,
    headers: { ...varied, 'Content-Encoding': 'gzip' },
    body: bytes,
  }))
}
