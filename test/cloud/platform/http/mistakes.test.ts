import { expect, test } from 'vitest'
import { mintApiKey } from '../../../../cloud/platform/credentials/api-keys.ts'
import { grantRole } from '../../../../cloud/platform/credentials/roles.ts'
import { systemRuntime } from '../../../../protocol/system-runtime.ts'
import { errorOf, openCloud, type CallOptions, type TestCloud } from '../../../world/cloud.ts'

const O = '/api/v1/owners'

interface Mistake {
  what: string
  method?: string
  path: string
  options?: (app: TestCloud) => Promise<CallOptions> | CallOptions
  says: string
  code: string
  status: number
}

const withKey =
  (scopes: Parameters<TestCloud['key']>[0], more: CallOptions = {}) =>
  async (app: TestCloud): Promise<CallOptions> => ({ key: await app.key(scopes), ...more })
const withToken =
  (claims: Record<string, unknown> = {}) =>
  async ({ issuer }: TestCloud): Promise<CallOptions> => ({ token: await issuer.token(claims) })

const someKey = mintApiKey(systemRuntime().random).key
const sendKey = 'send an API key as `X-API-Key: lk…`'
const sendToken = 'send an identity token as `Authorization: Bearer …`'
const eitherOr = `A credential is required: ${sendKey}, or an identity token as \`Authorization: Bearer …\`.`

const mistakes: Mistake[] = [
  {
    what: 'an API key as a bearer token',
    path: `${O}/hubs`,
    options: async (app) => ({ token: await app.key(['hubs:read']) }),
    status: 401,
    code: 'invalid_token',
    says: `This is an API key, no access token: ${sendKey}.`,
  },
  {
    what: 'an API key in Authorization without a scheme',
    path: `${O}/hubs`,
    options: async (app) => ({ headers: { Authorization: await app.key(['hubs:read']) } }),
    status: 401,
    code: 'invalid_token',
    says: `The header holds an API key: ${sendKey}.`,
  },
  {
    what: 'an API key in a header of another name',
    path: `${O}/hubs`,
    options: async (app) => ({ headers: { 'Api-Key': await app.key(['hubs:read']) } }),
    status: 401,
    code: 'authentication_required',
    says: `${eitherOr} One stands in the header api-key: it is not looked for there.`,
  },
  {
    what: 'an API key in the address',
    path: `${O}/hubs?api_key=${someKey}`,
    status: 401,
    code: 'authentication_required',
    says: `${eitherOr} One stands in the address, which logs keep: it is not looked for there.`,
  },
  {
    what: 'an identity token as X-API-Key',
    path: `${O}/hubs`,
    options: async ({ issuer }) => ({ key: await issuer.token() }),
    status: 401,
    code: 'invalid_api_key',
    says: `This is an identity token, no API key: ${sendToken}.`,
  },
  {
    what: 'an API key that was copied in part',
    path: `${O}/hubs`,
    options: () => ({ key: someKey.slice(0, 20) }),
    status: 401,
    code: 'invalid_api_key',
    says: 'The API key is not valid: it is `lk_`, 8 characters, `_` and 43 characters. The number of the cell, if there is one, follows `lk`.',
  },
  {
    what: 'a token without Bearer',
    path: '/users/user',
    options: async ({ issuer }) => ({ headers: { Authorization: await issuer.token() } }),
    status: 401,
    code: 'invalid_token',
    says: `The header is not as it must be: ${sendToken}.`,
  },
  {
    what: 'an API key on a customer’s path',
    path: '/users/user',
    options: withKey(['hubs:read']),
    status: 401,
    code: 'authentication_required',
    says: `A credential is required: ${sendToken}. An API key is for the paths of owners and of diagnostics.`,
  },
  {
    what: 'a key without the scope',
    path: `${O}/hubs`,
    options: withKey(['orders:read']),
    status: 403,
    code: 'scope_missing',
    says: 'The API key lacks the scope hubs:read. Scopes of a key never change: ask for another key.',
  },
  {
    what: 'a guest on an owner’s path',
    path: `${O}/hubs`,
    options: withToken({ anonymous: true }),
    status: 403,
    code: 'scope_missing',
    says: 'A guest has no role, and this endpoint takes one that grants hubs:read: sign in as a user with a role, or send an API key as `X-API-Key: lk…`.',
  },
  {
    what: 'somebody without a role on an owner’s path',
    path: `${O}/hubs`,
    options: withToken(),
    status: 403,
    code: 'scope_missing',
    says: 'This identity has no role, and this endpoint takes one that grants hubs:read: ask the operator for a role, or send an API key as `X-API-Key: lk…`.',
  },
  {
    what: 'a role that does not grant the scope',
    method: 'POST',
    path: `${O}/request_door_open?hub_id=1`,
    options: async ({ issuer, context }) => {
      const grant = { identity: 'ana', role: 'analyst', hubs: '*' } as const
      await grantRole(context.db.kysely, context.runtime, grant)
      return { token: await issuer.token({ sub: 'ana' }) }
    },
    status: 403,
    code: 'scope_missing',
    says: 'No role of this identity grants hubs:write.',
  },
  {
    what: 'diagnostics without being an administrator',
    path: '/diag/sysinfo',
    options: withToken(),
    status: 403,
    code: 'scope_missing',
    says: 'The token’s role is not admin: diagnostics take one that is, or an API key with the scope diag:read.',
  },
  {
    what: 'a customer who was not bootstrapped',
    path: '/users/wallet/balance',
    options: withToken(),
    status: 404,
    code: 'user_not_found',
    says: 'The identity has no user yet: call POST /users/user/bootstrap first.',
  },
  {
    what: 'a missing /api/v1',
    path: '/owners/hubs',
    status: 404,
    code: 'route_not_found',
    says: 'No such endpoint. Did you mean GET /api/v1/owners/hubs?',
  },
  {
    what: 'half of /api/v1',
    path: '/v1/users/wallet/balance',
    status: 404,
    code: 'route_not_found',
    says: 'No such endpoint. Did you mean GET /api/v1/users/wallet/balance?',
  },
  {
    what: 'a misspelt path',
    path: '/users/walet/ballance',
    status: 404,
    code: 'route_not_found',
    says: 'No such endpoint. Did you mean GET /api/v1/users/wallet/balance?',
  },
  {
    what: 'an action in the wrong room',
    method: 'POST',
    path: `${O}/hubs/open_bin`,
    status: 404,
    code: 'route_not_found',
    says: 'No such endpoint. Did you mean POST /api/v1/owners/controls/open_bin?',
  },
  {
    what: 'another method',
    path: '/api/v1/deals/apply-reward',
    status: 405,
    code: 'method_not_allowed',
    says: 'This endpoint has POST alone.',
  },
  {
    what: 'hub for hub_id',
    path: `${O}/hubs/get_hub_health?hub=1`,
    options: withKey(['hubs:read']),
    status: 422,
    code: 'validation_error',
    says: 'hub_id in the query: Field required. What was sent is called hub: did you mean hub_id?',
  },
  {
    what: 'hub_id for hub',
    method: 'POST',
    path: `${O}/controls/open_bin?hub_id=1&bin=1`,
    options: withKey(['controls:write']),
    status: 422,
    code: 'validation_error',
    says: 'hub in the query: Field required. What was sent is called hub_id: did you mean hub?',
  },
  {
    what: 'a parameter in the body that belongs into the query',
    method: 'PUT',
    path: '/users/1/orders/1/order_item?hub_id=1&product_id=1',
    options: async ({ issuer }) => ({ token: await issuer.token(), body: { quantity: 1 } }),
    status: 422,
    code: 'validation_error',
    says: 'product_id: Field required. It was sent in the query, and belongs into the body.',
  },
  {
    what: 'a field that is misspelt in a body',
    method: 'PATCH',
    path: '/users/user/profile',
    options: async ({ issuer }) => ({ token: await issuer.token(), body: { fist_name: 'Ada' } }),
    status: 422,
    code: 'validation_error',
    says: 'fist_name: Extra inputs are not permitted. Did you mean first_name?',
  },
  {
    what: 'several wrong values',
    path: `${O}/hubs/all_orders_paginated?hub_id=one&limit=0`,
    options: withKey(['orders:read']),
    status: 422,
    code: 'validation_error',
    says: 'hub_id in the query: Input should be a valid integer: a whole number, written in digits. And 1 more: see `detail`.',
  },
  {
    what: 'a value out of its range',
    method: 'PUT',
    path: `${O}/hubs/product/1/update_quantity`,
    options: withKey(['inventory:write'], { body: { quantity: -1 } }),
    status: 422,
    code: 'invalid_quantity',
    says: 'The quantity must be a non-negative integer.',
  },
]

test.each(mistakes)('an error message explains the remedy of a typical mistake: $what', async (mistake) => {
  const app = await openCloud()
  const options = await mistake.options?.(app)
  const answer = await app.call(mistake.method ?? 'GET', mistake.path, options)
  const { error } = errorOf(answer)
  expect([answer.status, error.code, error.message]).toEqual([mistake.status, mistake.code, mistake.says])
  // No answer repeats a secret.
  expect(JSON.stringify(answer.json)).not.toMatch(/lk_[0-9A-Za-z]{8}_/)
})

test('an invented name is repeated only in part', async () => {
  const { call, issuer } = await openCloud()
  const body = { ['x'.repeat(5000)]: 1 }
  const answer = await call('PATCH', '/users/user/profile', { token: await issuer.token(), body })
  expect(errorOf(answer).error.message.length).toBeLessThan(300)
})

test('a path without similar paths gets no suggestion', async () => {
  const { call } = await openCloud()
  for (const path of ['/wp-login.php', '/no/such/thing', '/x/y/z', '/', `/${'a/'.repeat(500)}`]) {
    const answer = await call('GET', path === '/' ? '//' : path)
    if (answer.status === 404) expect(errorOf(answer).error.message).toBe('No such endpoint.')
  }
})
