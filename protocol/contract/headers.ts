import { rateClasses, ratesOf, type Route } from './route.ts'

/** Headers of answers that callers read, and what they say. */
export const headerWords = {
  'X-Request-Id': 'Names the request; tell it when you ask about it.',
  'RateLimit-Policy':
    'The allowance and its window, `"default";q=360;w=60`: requests in so many seconds (IETF draft).',
  RateLimit:
    'What is left of it, and in how many seconds it is whole again: `"default";r=359;t=42` (IETF draft).',
  'X-RateLimit-Limit': 'Requests in a minute.',
  'X-RateLimit-Remaining': 'How many of them are left.',
  'Retry-After': 'Try again in so many seconds, and not before.',
  'WWW-Authenticate': 'The kinds of credentials that there are.',
  'Idempotent-Replayed':
    '`true`: this is the answer that the first request with this `Idempotency-Key` was given.',
  'X-Total-Count': 'How many there are on all pages.',
  Link: 'Where the first, the previous, the next and the last page are (RFC 8288).',
  ETag: 'The answer’s mark: in `If-None-Match` it is answered with 304 as long as nothing has changed.',
  'X-Incomplete': 'There while the summaries of the hub are being made anew: figures are too low until then.',
  Deprecation: 'Since when this endpoint should not be used any more (RFC 9745).',
  Sunset: 'Until when it answers at least (RFC 8594).',
} as const
export type HeaderName = keyof typeof headerWords

/** What answers of a route with a status carry. */
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
