import { z } from 'zod'
import { valuesIn, namedEnum } from '../model/named-enum.ts'
import { errorCodeNames, errorCodes, type ErrorCode } from '../model/error-codes.ts'
import { errorHelp } from './error-help.ts'
import { isJsonField } from './form.ts'
import { rateClasses, refusesFields, type Route } from './route.ts'

/** The rule that a value breaks, as FastAPI names it. */
const ValidationType = namedEnum('ValidationType', 'Kind of the rule that was broken.', {
  missing: 'the field is required.',
  int_parsing: 'the value is no integer.',
  float_parsing: 'the value is no number.',
  bool_parsing: 'the value is no boolean.',
  string_type: 'the value is no text.',
  string_too_short: 'the text is too short.',
  string_too_long: 'the text is too long.',
  string_pattern_mismatch: 'the text has another form.',
  greater_than: 'the number must be greater.',
  greater_than_equal: 'the number is too small.',
  less_than: 'the number must be less.',
  less_than_equal: 'the number is too large.',
  literal_error: 'the value is none of the allowed values.',
  list_type: 'the value is no list.',
  too_long: 'the list has too many items.',
  extra_forbidden: 'the name is unknown.',
  value_error: 'the value breaks another rule; `msg` states it.',
  json_invalid: 'the body is no JSON.',
})

/** Every error code with its cause. */
export const ErrorCodeName = z.enum(errorCodeNames).meta({
  id: 'ErrorCode',
  description: valuesIn(
    'Code of the error for programs. Further codes may be added: treat an unknown one by its status.',
    new Map(errorCodeNames.map((code) => [code, errorHelp[code].cause])),
  ),
})

/** One entry of a 422's `detail`. */
export const ValidationItem = z
  .object({
    loc: z
      .array(z.union([z.string(), z.int()]))
      .describe('Place of the problem: `query`, `path`, `body` or `header`, then the path to the field.'),
    msg: z.string().describe('Rule that was broken, as a sentence.'),
    type: ValidationType,
    input: z.unknown().optional().describe('Value that was sent; absent if it was missing.'),
    ctx: z
      .record(z.string(), z.unknown())
      .optional()
      .describe('Limits of the rule, such as the maximum; absent if there are none.'),
  })
  .meta({ id: 'ValidationItem', description: 'One problem of a request.' })
export type ValidationItem = z.infer<typeof ValidationItem>

/** The one shape of every error, on both interfaces. */
export const ErrorBody = z
  .object({
    error: z
      .object({
        code: ErrorCodeName,
        message: z.string().describe('Error as a sentence.'),
        details: z
          .record(z.string(), z.unknown())
          .optional()
          .describe('Facts of this error, by its code; absent if there are none.'),
      })
      .meta({ id: 'ErrorDetails', description: 'The error for programs.' })
      .describe('Error for programs.'),
    detail: z
      .union([z.string(), z.array(ValidationItem)])
      .describe(
        'The same message, or for 422 the list of everything that is wrong, as FastAPI clients read it.',
      ),
    request_id: z.string().describe('Id of the request, also in the header `X-Request-Id`.'),
  })
  .meta({ id: 'ErrorBody', description: 'Body of every error.' })
export type ErrorBody = z.infer<typeof ErrorBody>

/** Every error code of a route: its own codes, and the codes that follow from its other fields. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...byAuth(route),
    ...(route.hub ? (['hub_access_denied', 'hub_not_found'] as const) : []),
    // For a retired hub.
    ...(route.hub && route.interface === 'owner' && route.method !== 'GET'
      ? (['hub_not_accepting_orders'] as const)
      : []),
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
