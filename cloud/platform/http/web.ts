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

/** What browsers and caches are told: who may read an answer, what is kept, what is sent smaller. */

/** Of every answer; those that are pages say more of themselves. */
export const securityHeaders = {
  // What a caller has stored is taken for the type that it is said to have, and for nothing else.
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
} as const

/** Headers that a page of another origin may send. */
const SENT = [
  'Authorization',
  'X-API-Key',
  'Content-Type',
  'Idempotency-Key',
  'If-None-Match',
  'Last-Event-ID',
]
/** Headers of answers that it may read. */
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
/** How long a browser remembers that it may. */
const PREFLIGHT_SECONDS = 600

/**
 * Lets pages of these origins call. Credentials go in headers that a page sets itself, never in cookies: that a browser holds
 * them opens nothing to a stranger's page.
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

/** Checks `Host` and `Origin` of a call against the names of this service, and the origins that may call it. */
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

/** An answer with the mark by which its caller asks whether it has changed; without its body where it has not (RFC 9110 §13). */
export function validated(route: Route, answer: Answer, call: Call): Answer {
  if (route.validated === undefined || answer.status !== 200 || typeof answer.body !== 'string') return answer
  const etag = answer.headers['ETag'] ?? etagOf(answer.body)
  const headers = {
    ...answer.headers,
    ETag: etag,
    // Kept, and asked about before each use: stock and prices are never shown as they were.
    'Cache-Control': `${route.validated}, no-cache`,
    // Of a 304 it is told as of the answer that it stands for.
    Vary: route.validated === 'private' ? `X-API-Key, Authorization, ${CODING}` : CODING,
  }
  const ifNoneMatch = call.header('If-None-Match')
  if (ifNoneMatch === undefined || !matchesTag(ifNoneMatch, etag)) return { ...answer, headers }
  const { 'Content-Type': _, ...kept } = headers as Record<string, string>
  return { status: 304, headers: kept, body: '' }
}

/** Weak: the same answer is sent as it is and compressed. */
export const etagOf = (text: string): string => `W/"${hash('sha256', text, 'base64url').slice(0, 22)}"`

/** Whether an `If-None-Match` names the tag. */
export const matchesTag = (header: string, etag: string): boolean =>
  header
    .split(',')
    .map((each) => each.trim())
    .some((each) => each === '*' || plainTag(each) === plainTag(etag))

const plainTag = (tag: string): string => tag.replace(/^W\//, '')

/** An answer that is sent compressed or not differs by it. */
const CODING = 'Accept-Encoding'
/** What is smaller costs more to compress than to send. */
const LEAST_BYTES = 1024
const COMPRESSIBLE = /^(application\/json|text\/(html|csv|css|javascript|markdown))\b/
const inBackground = promisify(gzip)
/** Large answers that are the same for all callers, compressed once: the description of the API. */
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
 * The answer compressed, for callers who take it so: texts that were read and not written. What a POST answers may hold a
 * secret (a token, a key, a webhook's secret), whose length would be told beside text of the caller's (BREACH); a stream is
 * sent as it comes.
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
