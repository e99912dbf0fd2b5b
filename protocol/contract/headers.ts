import { rateClasses, ratesOf, type Route } from './route.ts'

/** Headers of answers, with their meaning. */
export const headerText = {
  'X-Request-Id': 'Id of the request. Name it when you report a problem.',
  'RateLimit-Policy': 'Allowance and window in seconds: `"default";q=360;w=60` (IETF draft).',
  RateLimit:
    'Remaining requests, and seconds until the allowance is full again: `"default";r=359;t=42` (IETF draft).',
  'X-RateLimit-Limit': 'Requests per minute.',
  'X-RateLimit-Remaining': 'Remaining requests of the window.',
  'Retry-After': 'Seconds to wait before the next try.',
  'WWW-Authenticate': 'Kinds of credentials that the endpoint accepts.',
  'Idempotent-Replayed':
    '`true`: the answer is a copy of the answer to the first request with this `Idempotency-Key`.',
  'X-Total-Count': 'Number of items on all pages.',
  Link: 'Addresses of the first, previous, next and last page (RFC 8288).',
  ETag: 'Version of the answer. A request with it in `If-None-Match` gets 304 while nothing has changed.',
  'X-Incomplete':
    'Present while the hub’s summaries are calculated again: the figures are too low until then.',
  Deprecation: 'Time since which the endpoint is deprecated (RFC 9745).',
  Sunset: 'Time until which the endpoint is served at least (RFC 8594).',
} as const
export type HeaderName = keyof typeof headerText

/** The headers of a route's answers with a status. */
export function headersOf(route: Route, status: number): HeaderName[] {
  const isSuccess = status < 300
  const isLimited = rateClasses[ratesOf(route)[0]].requests !== Infinity
  return [
    'X-Request-Id',
    ...(isLimited
      ? (['RateLimit-Policy', 'RateLimit', 'X-RateLimit-Limit', 'X-RateLimit-Remaining'] as const)
      : []),
    ...(status === 429 || status === 503 ? (['Retry-After'] as const) : []),
    ...(status === 401 ? (['WWW-Authenticate'] as const) : []),
    ...(route.idempotent && isSuccess ? (['Idempotent-Replayed'] as const) : []),
    ...(route.validated && isSuccess ? (['ETag'] as const) : []),
    ...(isSuccess ? (route.headers ?? []) : []),
    ...(route.deprecated ? (['Deprecation', 'Sunset'] as const) : []),
  ]
}

/** The headers that say that a route is deprecated. */
export const deprecationOf = ({ deprecated }: Route): Record<string, string> =>
  deprecated
    ? {
        Deprecation: `@${Date.parse(deprecated.since) / 1000}`,
        Sunset: new Date(deprecated.sunset).toUTCString(),
      }
    : {}
