import { z } from 'zod'
import { errorCodeNames, errorCodes, type ErrorCode } from '../model/error-codes.ts'
import { isJsonField } from './form.ts'
import { rateClasses, refusesFields, type Route } from './route.ts'

/** One entry of a 422's `detail`. */
export const ValidationItem = z.object({
  loc: z.array(z.union([z.string(), z.int()])),
  msg: z.string(),
  type: z.enum([
    'missing',
    'int_parsing',
    'float_parsing',
    'bool_parsing',
    'string_type',
    'string_too_short',
    'string_too_long',
    'string_pattern_mismatch',
    'greater_than',
    'greater_than_equal',
    'less_than',
    'less_than_equal',
    'literal_error',
    'list_type',
    'too_long',
    'extra_forbidden',
    'value_error',
    'json_invalid',
  ]),
  input: z.unknown().optional(),
  ctx: z.record(z.string(), z.unknown()).optional(),
})
export type ValidationItem = z.infer<typeof ValidationItem>

/** The one shape of every error, on both interfaces. */
export const ErrorBody = z
  .object({
    error: z.object({
      code: z.enum(errorCodeNames),
      message: z.string(),
      details: z.record(z.string(), z.unknown()).optional(),
    }),
    /** What FastAPI clients read: the message, or for a 422 of validation the list of what is wrong. */
    detail: z.union([z.string(), z.array(ValidationItem)]),
    request_id: z.string(),
  })
  .meta({ id: 'ErrorBody' })
export type ErrorBody = z.infer<typeof ErrorBody>

/** Every error code with which a route may answer: its own, and those that follow from what it is. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...byAuth(route),
    ...(route.hub ? (['hub_access_denied', 'hub_not_found'] as const) : []),
    ...(isValidated(route) ? (['validation_error'] as const) : []),
    ...(readsJson(route) || route.form || route.rawBody
      ? (['unsupported_media_type', 'payload_too_large', 'request_timeout'] as const)
      : []),
    ...(hasJson(route) && route.interface === 'owner' ? (['invalid_json'] as const) : []),
    ...(route.idempotent ? (['idempotency_key_in_use', 'idempotency_key_reused'] as const) : []),
    ...Object.values(route.badValues ?? {}),
    ...(route.errors ?? []),
    ...(rateClasses[route.rate].requests === Infinity ? [] : (['rate_limit_exceeded'] as const)),
    'internal_error',
    'service_unavailable',
  ])
  return [...codes].sort((a, b) => errorCodes[a].status - errorCodes[b].status)
}

/** Whether a request can have a wrong value: owner paths refuse names that they do not know, whatever they take. */
const isValidated = (route: Route): boolean =>
  route.interface === 'owner' ||
  [route.params, route.query, route.form].some((part) => part !== undefined) ||
  readsJson(route)

/** Whether the body of a request is read as JSON, be it to refuse its fields. */
const readsJson = (route: Route): boolean => route.body !== undefined || refusesFields(route)

const hasJson = (route: Route): boolean =>
  readsJson(route) || Object.values(route.form?.fields.shape ?? {}).some(isJsonField)

function byAuth(route: Route): readonly ErrorCode[] {
  return route.auth.kind === 'none' ? [] : [...byKind(route), 'identity_unavailable']
}

function byKind({ auth, path }: Route): readonly ErrorCode[] {
  switch (auth.kind) {
    case 'api':
    case 'diag':
      return ['authentication_required', 'invalid_api_key', 'invalid_token', 'token_expired', 'scope_missing']
    case 'user':
      return [
        'authentication_required',
        'invalid_token',
        'token_expired',
        // A path that names a user is closed to everyone else, also to an identity that has none.
        path.includes('{user_id}') ? 'forbidden' : 'user_not_found',
      ]
    case 'identity':
      return ['authentication_required', 'invalid_token', 'token_expired']
    case 'optional-identity':
      return ['invalid_token', 'token_expired']
    case 'none':
      return []
  }
}
