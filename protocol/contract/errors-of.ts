import { errorCodes, type ErrorCode } from '../model/error-codes.ts'
import { isJsonField } from './form.ts'
import { rateClasses, type Route } from './route.ts'

/** Every error code with which a route may answer: its own, and those that follow from what it is. */
export function errorsOf(route: Route): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...byAuth(route),
    ...(route.hub ? (['hub_access_denied', 'hub_not_found'] as const) : []),
    ...(route.params || route.query || route.body || route.form ? (['validation_error'] as const) : []),
    ...(route.body || route.form ? (['unsupported_media_type'] as const) : []),
    ...(route.body || route.form || route.rawBody ? (['payload_too_large'] as const) : []),
    ...(hasJson(route) && route.interface === 'owner' ? (['invalid_json'] as const) : []),
    ...(route.idempotent ? (['idempotency_key_in_use', 'idempotency_key_reused'] as const) : []),
    ...Object.values(route.badValues ?? {}),
    ...(route.errors ?? []),
    ...(rateClasses[route.rate].requests === Infinity ? [] : (['rate_limit_exceeded'] as const)),
    'internal_error',
  ])
  return [...codes].sort((a, b) => errorCodes[a].status - errorCodes[b].status)
}

function hasJson({ body, form }: Route): boolean {
  return body !== undefined || Object.values(form?.fields.shape ?? {}).some(isJsonField)
}

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
