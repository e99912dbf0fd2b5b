import type { Auth } from '../../../protocol/contract/route.ts'
import type { Scope } from '../../../protocol/model/scopes.ts'
import { ApiError } from '../api-error.ts'
import { prefixOf } from './api-keys.ts'
import type { IdentityClaims } from './credential.ts'

/** Advice for callers with a wrong or misplaced credential. It never repeats the credential. */

const asKey = 'an API key as `X-API-Key: lk…`'
const asToken = 'an identity token as `Authorization: Bearer …`'

/** The request has no credential at the place that the route reads. */
export function nothingPresented(
  auth: Auth,
  presented: { readonly apiKey: string | undefined; misplacedKey(): string | undefined },
): ApiError {
  if (auth.kind !== 'api' && auth.kind !== 'diag') {
    const onlyKey =
      presented.apiKey === undefined ? '' : ' An API key is for the paths of owners and of diagnostics.'
    return new ApiError('authentication_required', `A credential is required: send ${asToken}.${onlyKey}`)
  }
  const place = presented.misplacedKey()
  const found = place === undefined ? '' : ` One stands in the ${place}: it is not looked for there.`
  return new ApiError(
    'authentication_required',
    `A credential is required: send ${asKey}, or ${asToken}.${found}`,
  )
}

/** `Authorization` contains no bearer token. */
export function notBearer(authorization: string): ApiError {
  const hint = keyIn(authorization)
    ? `The header holds an API key: send ${asKey}.`
    : `The header is not as it must be: send ${asToken}.`
  return new ApiError('invalid_token', hint)
}

/** A bearer token that is an API key. */
export const keyAsToken = (token: string): ApiError | undefined =>
  keyIn(token)
    ? new ApiError('invalid_token', `This is an API key, no access token: send ${asKey}.`)
    : undefined

/** `X-API-Key` contains no key of this service. */
export function notKey(apiKey: string): ApiError {
  if (/^(Bearer +)?eyJ[\w-]*\./i.test(apiKey))
    return refusedKey('it is an identity token', `This is an identity token, no API key: send ${asToken}.`)
  if (prefixOf(apiKey) === undefined)
    return refusedKey(
      'it is malformed',
      'The API key is not valid: it is `lk_`, 8 characters, `_` and 43 characters. The number of the cell, if there is one, follows `lk`.',
    )
  return refusedKey('there is no such key', undefined)
}

function refusedKey(why: string, message: string | undefined): ApiError {
  const error = new ApiError('invalid_api_key', message)
  error.why = { why }
  return error
}

export const keyIn = (text: string): boolean => text.split(/\s+/).some((word) => prefixOf(word) !== undefined)

/** The key lacks the scope. */
export const keyLacks = (scope: Scope): string =>
  `The API key lacks the scope ${scope}. Scopes of a key never change: ask for another key.`

/** The identity has no role that grants the scope. */
export function identityLacks(scope: Scope, { anonymous }: IdentityClaims, hasRoles: boolean): string {
  if (anonymous)
    return `A guest has no role, and this endpoint takes one that grants ${scope}: sign in as a user with a role, or send ${asKey}.`
  return hasRoles
    ? `No role of this identity grants ${scope}.`
    : `This identity has no role, and this endpoint takes one that grants ${scope}: ask the operator for a role, or send ${asKey}.`
}

/** Diagnostics are for administrators. */
export const notAdmin = (scope: Scope): string =>
  `The token’s role is not admin: diagnostics take one that is, or an API key with the scope ${scope}.`
