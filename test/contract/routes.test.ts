import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import { errorsOf } from '../../protocol/contract/errors.ts'
import { mountsOf, type Route } from '../../protocol/contract/route.ts'
import { routes, type RouteId } from '../../protocol/contract/routes.ts'
import { scopes, type Scope } from '../../protocol/model/scopes.ts'
import { errorOf, openCloud, type CallOptions, type TestCloud } from '../world/cloud.ts'

const table = Object.entries(routes) as [RouteId, Route][]
const served = table.filter(([id]) => !id.startsWith('demo.'))

let shared: TestCloud | undefined

/** One cloud serves all tests: they ask only for its refusals. Each test has new rate limits. */
async function cloud(): Promise<TestCloud> {
  shared ??= await openCloud()
  shared.runtime.clock.advance(60_000)
  return shared
}

/** Paths of the route with parameters of the given value, at all of its mounts. */
const pathsOf = (route: Route, value: string): string[] =>
  mountsOf(route).map((mount) => mount.replaceAll(/\{\w+\}/g, value))

const bodyOf = (route: Route): CallOptions => (route.body ? { body: {} } : {})

async function credentialFor({ key, issuer }: TestCloud, route: Route): Promise<CallOptions> {
  switch (route.auth.kind) {
    case 'api':
    case 'diag':
      return { key: await key([route.auth.scope]) }
    case 'user':
    case 'identity':
    case 'optional-identity':
      return { token: await issuer.token() }
    case 'none':
      return {}
  }
}

/** Declares a test only for the routes to which it applies, so that no other route reports a skip. */
const testIf = (applies: unknown) => (applies ? test : () => {})

describe.each(served)('%s', (_id, route) => {
  const guarded = route.auth.kind !== 'none' && route.auth.kind !== 'optional-identity'

  test('a request with a method that the path does not have is 405', async () => {
    const { call } = await cloud()
    const had = served.filter(([, other]) => other.path === route.path).map(([, other]) => other.method)
    const [absent = 'PUT'] = (['PATCH', 'DELETE'] as const).filter((method) => !had.includes(method))
    for (const path of pathsOf(route, '1')) {
      const answer = await call(absent, path)
      expect([answer.status, errorOf(answer).error.code]).toEqual([405, 'method_not_allowed'])
      expect(answer.headers.get('Allow')?.split(', ')).toContain(route.method)
    }
  })

  testIf(guarded)('a request without a credential is 401, before any other check', async () => {
    const { call } = await cloud()
    for (const path of [...pathsOf(route, '1'), ...pathsOf(route, 'x')]) {
      const answer = await call(route.method, path, bodyOf(route))
      expect([answer.status, errorOf(answer).error.code]).toEqual([401, 'authentication_required'])
    }
  })

  testIf(route.auth.kind !== 'none')('a request with a wrong credential is 401', async () => {
    const { call } = await cloud()
    for (const path of pathsOf(route, '1')) {
      const answer = await call(route.method, path, { token: 'a.b.c', ...bodyOf(route) })
      expect([answer.status, errorOf(answer).error.code]).toEqual([401, 'invalid_token'])
      if (route.auth.kind !== 'api') continue
      const keyed = await call(route.method, path, { key: 'lk_wrong', ...bodyOf(route) })
      expect([keyed.status, errorOf(keyed).error.code]).toEqual([401, 'invalid_api_key'])
    }
  })

  testIf('scope' in route.auth)(
    'a request without the route’s scope is 403, also with all other scopes and invalid parameters',
    async () => {
      const { call, key, issuer } = await cloud()
      const { scope, further, either } = route.auth as { scope: Scope; further?: Scope; either?: true }
      const enough = either ? [scope, further] : [scope]
      const credentials = [
        { key: await key(scopes.filter((other) => !enough.includes(other))) },
        { token: await issuer.token() },
      ]
      for (const credential of credentials)
        for (const path of pathsOf(route, 'x')) {
          const answer = await call(route.method, path, { ...credential, ...bodyOf(route) })
          expect([answer.status, errorOf(answer).error]).toEqual([
            403,
            expect.objectContaining({ code: 'scope_missing', details: { required_scope: scope } }),
          ])
        }
    },
  )

  const integers = Object.values(route.params?.shape ?? {}).filter(
    (field) => !(field as z.ZodType).safeParse('x').success && (field as z.ZodType).safeParse(1).success,
  )

  testIf(integers.length > 0)('a path parameter of the wrong type is 422', async () => {
    const app = await cloud()
    const credential = await credentialFor(app, route)
    for (const path of pathsOf(route, 'x')) {
      const answer = await app.call(route.method, path, { ...credential, ...bodyOf(route) })
      expect(answer.status).toBe(422)
      expect(errorOf(answer).detail).toContainEqual(
        expect.objectContaining({ type: 'int_parsing', loc: ['path', expect.any(String)] }),
      )
    }
  })

  const required = Object.entries(route.query?.shape ?? {})
    .filter(([, field]) => !(field as z.ZodType).safeParse(undefined).success)
    .map(([name]) => name)

  testIf(required.length > 0)(
    'a query parameter that is missing, empty or not an integer is 422',
    async () => {
      const app = await cloud()
      const credential = await credentialFor(app, route)
      const [path = ''] = pathsOf(route, '1')
      const detailOf = async (value: string | undefined) => {
        const query = new URLSearchParams(
          value === undefined ? [] : required.map((name): [string, string] => [name, value]),
        )
        const answer = await app.call(route.method, `${path}?${query.toString()}`, {
          ...credential,
          ...bodyOf(route),
        })
        if (route.invalidBody) {
          // The error is within an answer of the success status.
          expect(answer.status).toBe(200)
          const { result } = answer.json as { result: { error_type: string; error: string } }
          expect(result.error_type).toBe('validation_error')
          return result.error
        }
        expect(answer.status).toBe(422)
        return errorOf(answer).detail
      }
      for (const name of required) {
        if (route.invalidBody) {
          expect(await detailOf(undefined)).toContain(`query.${name}: Field required`)
          for (const value of ['', '1.5', '1e3'])
            expect(await detailOf(value)).toContain(`query.${name}: Input should be a valid integer`)
          continue
        }
        expect(await detailOf(undefined)).toContainEqual(
          expect.objectContaining({ loc: ['query', name], type: 'missing' }),
        )
        const isInteger = (route.query!.shape[name] as z.ZodType).safeParse(1).success
        for (const value of isInteger ? ['', '1.5', '1e3'] : [])
          expect(await detailOf(value)).toContainEqual(
            expect.objectContaining({ loc: ['query', name], type: 'int_parsing' }),
          )
      }
    },
  )

  testIf(route.hub)(
    'a hub outside the key’s grant is denied, or not found for a key with all hubs',
    async () => {
      const { call, key } = await cloud()
      const { scope } = route.auth as { scope: Scope }
      const hub = (id: number) => {
        const named = Object.hasOwn(route.query?.shape ?? {}, route.hub!)
          ? [...required, route.hub!]
          : required
        const values = [...new Set(named)].map((name): [string, string] => [
          name,
          String(name === route.hub ? id : 1),
        ])
        const inPath = Object.hasOwn(route.params?.shape ?? {}, route.hub!) ? String(id) : '1'
        return `${pathsOf(route, inPath)[0]}?${new URLSearchParams(values).toString()}`
      }
      const limited = await key([scope], { hubs: [1] })
      const all = await key([scope])
      for (const id of [2, 99]) {
        const denied = await call(route.method, hub(id), { key: limited })
        expect([denied.status, errorOf(denied).error.code]).toEqual([403, 'hub_access_denied'])
        const absent = await call(route.method, hub(id), { key: all })
        expect([absent.status, errorOf(absent).error.code]).toEqual([404, 'hub_not_found'])
      }
    },
  )

  testIf(route.path.includes('{user_id}'))('the path of another user is forbidden', async () => {
    const { call, issuer } = await cloud()
    const [path = ''] = pathsOf(route, '2')
    const query = new URLSearchParams(required.map((name): [string, string] => [name, '1']))
    const options = route.body ? { body: { product_id: 1, quantity: 1 } } : {}
    for (const sub of ['eve', 'ada']) {
      const token = await issuer.token({ sub })
      if (sub === 'ada') await call('POST', '/users/user/bootstrap', { token, body: { email: 'a@b.co' } })
      const answer = await call(route.method, `${path}?${query.toString()}`, { token, ...options })
      expect([answer.status, errorOf(answer).error.code]).toEqual([403, 'forbidden'])
    }
  })

  testIf(route.body && !route.bodyOptional)('a missing body is 422', async () => {
    const app = await cloud()
    const credential = await credentialFor(app, route)
    if (credential.token !== undefined)
      await app.call('POST', '/users/user/bootstrap', { ...credential, body: { email: 'a@b.co' } })
    const answer = await app.call(route.method, pathsOf(route, '1')[0]!, credential)
    expect(answer.status).toBe(422)
    expect(errorOf(answer).detail).toContainEqual({ loc: ['body'], type: 'missing', msg: 'Field required' })
  })
})

test('a route documents the errors that follow from its properties', () => {
  expect(errorsOf(routes['owner.hubs.health'])).toEqual([
    'authentication_required',
    'invalid_api_key',
    'invalid_token',
    'token_expired',
    'scope_missing',
    'hub_access_denied',
    'hub_not_found',
    'validation_error',
    'rate_limit_exceeded',
    'internal_error',
    'identity_unavailable',
    'service_unavailable',
  ])
})

test('each route has its own method and path, and a schema for each path parameter', () => {
  const keys = table.map(
    ([, { method, path }]) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}').replace(/.\/$/, '')}`,
  )
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([])
  for (const [id, route] of table) {
    const names = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
    expect([id, Object.keys(route.params?.shape ?? {})]).toEqual([id, names])
  }
})

test('numbers in queries have exactly the documented bounds', () => {
  const bounds = (id: RouteId, name: string): unknown[] => {
    const { query }: Route = routes[id]
    const { minimum, maximum } = z.toJSONSchema(query!.shape[name] as z.ZodType, { io: 'input' })
    return [id, name, minimum, maximum]
  }
  const most = Number.MAX_SAFE_INTEGER
  for (const [id, name, minimum, maximum] of [
    ['consumer.orders.list', 'page', 1, most],
    ['consumer.orders.list', 'size', 1, 100],
    ['consumer.wallet.transactions', 'limit', 1, 100],
    ['consumer.wallet.transactions', 'offset', 0, most],
    ['consumer.products.list', 'subcategory_id', 0, most],
    ['consumer.products.list', 'category_id', 0, most],
    ['consumer.products.list', 'page', 1, most],
    ['consumer.products.list', 'size', 1, 100],
    ['diag.logs.view', 'lines', 0, most],
  ] as const)
    expect(bounds(id, name)).toEqual([id, name, minimum, maximum])
})
