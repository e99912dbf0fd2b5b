import { headersOf } from '../../../protocol/contract/headers.ts'
import { afterAll, describe, expect, test } from 'vitest'
import type { ErrorBody } from '../../../protocol/contract/errors.ts'
import { errorsOf } from '../../../protocol/contract/errors.ts'
import {
  mountsOf,
  rateClasses,
  ratesOf,
  refusesFields,
  type RateClasses,
  type Route,
} from '../../../protocol/contract/route.ts'
import { routes, type RouteId } from '../../../protocol/contract/routes.ts'
import { errorStatus, type ErrorCode } from '../../../protocol/model/error-codes.ts'
import { scopes } from '../../../protocol/model/scopes.ts'
import { errorOf, type CallAnswer } from '../../world/cloud.ts'
import { onEachDatabase, type OpenDatabase } from '../../world/database.ts'
import { walks, type WalkName } from './all-cases.ts'
import { badCalls } from './bad-values.ts'
import type { Call, RouteCases } from './call.ts'
import { schemaDifferences } from './shape.ts'
import { openWorld, retireHub, type World } from './world.ts'

const MINUTE = 60_000
/**
 * Requests per minute in the walk. Each class has its own number, so that the class of a route is visible.
 * The first route of each class is exhausted at the documented number.
 */
const FEW: RateClasses = {
  standard: { ...rateClasses.standard, requests: 9 },
  low: { ...rateClasses.low, requests: 8 },
  payment: { ...rateClasses.payment, requests: 7 },
  picture: { ...rateClasses.picture, requests: 4 },
  open: { ...rateClasses.open, requests: 6 },
  lookup: { ...rateClasses.lookup, requests: 5 },
  download: { ...rateClasses.download, requests: 2 },
  guest: { ...rateClasses.guest, requests: 3 },
  unlimited: rateClasses.unlimited,
}
const EXHAUSTED_WHOLE: ReadonlySet<string | undefined> = new Set(
  Object.keys(rateClasses).map(
    (name) => Object.entries<Route>(routes).find(([, route]) => ratesOf(route)[0] === name)?.[0],
  ),
)
/** Errors that no call of a healthy service can cause. */
const UNREACHABLE: readonly ErrorCode[] = [
  'internal_error',
  'identity_unavailable',
  'request_timeout',
  'service_unavailable',
]

/**
 * Walks routes on both databases: each to its documented success with its exact shape, and to every
 * documented error. A documented error without a case fails the walk. Prints the number of routes and cases
 * of each interface. The checks in front of the handlers run for each route on SQLite, and for every eighth on
 * PostgreSQL: their statements do not differ from route to route.
 */
export function walk(name: WalkName): void {
  const cases: Partial<Record<RouteId, RouteCases>> = walks[name]
  const counts = new Map<string, number>()
  onEachDatabase(name, (open, kind) => {
    for (const [index, [id, own]] of (Object.entries(cases) as [RouteId, RouteCases][]).entries()) {
      const part = routes[id].interface
      const counted = () => void counts.set(part, (counts.get(part) ?? 0) + 1)
      const isWhole = kind === 'sqlite' || index % 8 === 0
      describe(id, () => walkRoute(id, own, open, { counted, isWhole }))
    }
  })
  afterAll(() => {
    for (const [part, count] of counts) {
      const own = Object.keys(cases).filter((id) => routes[id as RouteId].interface === part)
      console.log(`walk ${name}: ${part} interface, ${own.length} routes, ${count} cases`)
    }
  })
}

interface Walk {
  /** Called with each case. */
  counted: () => void
  /** Whether the checks in front of the handler are walked, too. */
  isWhole: boolean
}

function walkRoute(id: RouteId, own: RouteCases, open: OpenDatabase, { counted, isWhole }: Walk): void {
  const route: Route = routes[id]
  const testIfWhole = (title: string, run: () => unknown): void => {
    if (isWhole) test(title, run)
  }
  const limit = rateClasses[ratesOf(route)[0]]
  const seen = new Set<ErrorCode>()

  /** Sends a call after it resets its caller's rate limits. */
  async function ask(world: World, call: Call, mount?: string): Promise<CallAnswer> {
    counted()
    world.shop.clock.advance(MINUTE)
    await world.shop.hear()
    return world.ask(route, call, mount)
  }

  async function refused(world: World, call: Call, code: ErrorCode, label: string): Promise<ErrorBody> {
    return refusal(await ask(world, call), code, label)
  }

  function refusal(answer: CallAnswer, code: ErrorCode, label: string): ErrorBody {
    const body = answer.status >= 400 ? errorOf(answer) : undefined
    expect([label, answer.status, body?.error.code ?? answer.json]).toEqual([
      label,
      errorStatus(code, body?.error.details),
      code,
    ])
    expect(body!.request_id).toBe(answer.headers.get('X-Request-Id'))
    // FastAPI clients read a list for every 422, else the message.
    if (answer.status === 422) expect([label, body!.detail]).toEqual([label, expect.any(Array)])
    else expect(body!.detail).toBe(body!.error.message)
    seen.add(code)
    return body!
  }

  async function prepared(rates?: RateClasses): Promise<{ world: World; call: Call }> {
    const world = await openWorld(open, rates)
    return { world, call: await own.success(world) }
  }

  const mounts = isWhole ? mountsOf(route) : mountsOf(route).slice(-1)
  const places = isWhole ? 'every mount' : 'its last mount'
  test(`a successful answer has exactly the documented fields and headers, at ${places}`, async () => {
    for (const mount of mounts) {
      const { world, call } = await prepared()
      const answer = await ask(world, call, mount)
      expect([mount, answer.status, answer.status < 400 || answer.json]).toEqual([
        mount,
        route.status ?? 200,
        true,
      ])
      if (!route.produces && route.status !== 204)
        expect(schemaDifferences(route.response, answer.json)).toEqual([])
      expect(answer.headers.get('X-Request-Id')).toMatch(/^req_/)
      expect(undeclared(route, answer)).toEqual([])
      if (limit.requests === Infinity) continue
      expect(answer.headers.get('X-RateLimit-Limit')).toBe(String(limit.requests))
      expect(answer.headers.get('X-RateLimit-Remaining')).toBe(String(limit.requests - 1))
      expect(answer.headers.get('RateLimit-Policy')).toContain(`q=${limit.requests}`)
    }
  })

  testIfWhole('a missing, wrong, expired or insufficient credential is refused with its code', async () => {
    const { world, call } = await prepared()
    const { kind } = route.auth
    if (kind === 'none') return
    if (kind !== 'optional-identity')
      await refused(world, { ...call, as: 'nobody' }, 'authentication_required', 'nobody')
    const withToken = (token: string): Call => ({
      ...call,
      as: { headers: { Authorization: `Bearer ${token}` } },
    })
    await refused(world, withToken('a.b.c'), 'invalid_token', 'a wrong token')
    const past = Math.floor(world.shop.clock.now() / 1000) - 600
    const expired = await world.issuer.token({ sub: 'ada', iat: past - 600, exp: past })
    await refused(world, withToken(expired), 'token_expired', 'an expired token')
    if (kind === 'api' || kind === 'diag') {
      const withKey = (key: string): Call => ({ ...call, as: { headers: { 'X-API-Key': key } } })
      await refused(world, withKey('lk_wrong'), 'invalid_api_key', 'a wrong key')
      const { scope } = route.auth
      const enough = kind === 'api' && route.auth.either ? route.auth.further : undefined
      const without = await world.key({
        scopes: scopes.filter((other) => other !== scope && other !== enough),
      })
      const { error } = await refused(world, withKey(without), 'scope_missing', 'without the scope')
      expect(error.details).toEqual({ required_scope: scope })
    }
    if (route.hub !== undefined && kind === 'api') {
      const part = route.params && route.hub in route.params.shape ? 'params' : 'query'
      const at = (hub: number, as: Call['as']): Call => ({
        ...call,
        as,
        [part]: { ...call[part], [route.hub!]: hub },
      })
      for (const hub of [2, 99]) {
        await refused(world, at(hub, 'limited'), 'hub_access_denied', `a key without hub ${hub}`)
        await refused(world, at(hub, 'owner'), 'hub_not_found', `hub ${hub} of another, with a key for all`)
      }
    }
    if (kind === 'user') {
      await refused(
        world,
        { ...call, as: { customer: 'nobody-yet' } },
        namedUser(route) ? 'forbidden' : 'user_not_found',
        'a token without a user',
      )
      if (namedUser(route)) {
        await world.user('eve')
        await refused(world, { ...call, as: { customer: 'eve' } }, 'forbidden', "another user's path")
      }
    }
  })

  if ('scope' in route.auth) {
    const { scope } = route.auth
    testIfWhole('a key with only the route’s scope, and the scopes that it gives, is accepted', async () => {
      const { world, call } = await prepared()
      const as = { headers: { 'X-API-Key': await world.key({ scopes: [scope, ...(own.gives ?? [])] }) } }
      const answer = await world.ask(route, { ...call, as })
      expect([answer.status, answer.status < 400 || answer.json]).toEqual([route.status ?? 200, true])
    })
  }

  testIfWhole('every bad value is 422 with its own message, and hides no other check', async () => {
    const { world, call } = await prepared()
    for (const bad of badCalls(route, call)) {
      if (route.invalidBody) {
        const answer = await ask(world, bad.call)
        expect([bad.name, answer.status]).toEqual([bad.name, route.status ?? 200])
        expect(schemaDifferences(route.response, answer.json)).toEqual([])
        expect(answer.json).toMatchObject({ status: 'error', result: { error_type: 'validation_error' } })
        expect(JSON.stringify(answer.json)).toContain(`${bad.loc.join('.')}: `)
        continue
      }
      const { detail } = await refused(world, bad.call, bad.code, bad.name)
      // Only a 422 lists what is wrong.
      if (errorStatus(bad.code) !== 422) continue
      expect([bad.name, detail]).toEqual([
        bad.name,
        expect.arrayContaining([expect.objectContaining({ loc: bad.loc, type: bad.type })]),
      ])
    }
    if (!route.body && !refusesFields(route)) return
    const plain = { ...call, body: undefined } as unknown as Call
    const malformed = route.interface === 'owner' ? 'invalid_json' : 'validation_error'
    const { detail } = await refused(world, { ...plain, text: '{"a": ' }, malformed, 'malformed JSON')
    if (malformed === 'validation_error') expect(detail).toMatchObject([{ type: 'json_invalid' }])
    const asText = { ...plain, text: '{"a": 1}', headers: { 'Content-Type': 'text/plain' } }
    await refused(world, asText, 'unsupported_media_type', 'a body of another type')
    const large = { ...plain, text: JSON.stringify({ pad: 'x'.repeat(1024 * 1024) }) }
    await refused(world, large, 'payload_too_large', 'a body of more than 1 MiB')
    if (route.invalidBody) return
    await refused(world, { ...plain, text: '[1]' }, 'validation_error', 'a body that is no object')
    if (route.body && !route.bodyOptional)
      await refused(world, { ...plain, text: '' }, 'validation_error', 'no body')
  })

  if (route.interface === 'owner' && errorsOf(route).includes('hub_not_accepting_orders'))
    test('a retired hub is not changed', async () => {
      const { world, call } = await prepared()
      await retireHub(world)
      await refused(world, call, 'hub_not_accepting_orders', 'a retired hub')
    })

  for (const [code, prepare] of Object.entries(own.errors ?? {}) as [
    ErrorCode,
    NonNullable<RouteCases['success']>,
  ][])
    test(`the documented error ${code} occurs`, async () => {
      const world = await openWorld(open)
      const call = await prepare(world)
      counted()
      refusal(await world.ask(route, call), code, code)
    })

  if (limit.requests !== Infinity)
    testIfWhole(
      'the call after the last of a minute is 429 with the time to wait, and does not count',
      async () => {
        const rates = EXHAUSTED_WHOLE.has(id) ? rateClasses : FEW
        const { world, call } = await prepared(rates)
        const { requests } = rates[ratesOf(route)[0]]
        // A call that is refused for a bad value is cheap, and counts.
        const { form: _, ...withoutForm } = call
        const cheap = badCalls(route, call)[0]?.call ?? withoutForm
        world.shop.clock.advance(MINUTE)
        for (let calls = 0; calls < requests; calls += 1) {
          const { status } = await world.ask(route, cheap)
          if (status === 429) throw new Error(`call ${calls + 1} of ${requests} was refused`)
        }
        counted()
        const answer = await world.ask(route, call)
        refusal(answer, 'rate_limit_exceeded', '429')
        const wait = Number(answer.headers.get('Retry-After'))
        expect(wait).toBeGreaterThan(0)
        expect(wait).toBeLessThanOrEqual(60)
        expect(answer.headers.get('X-RateLimit-Remaining')).toBe('0')
        expect(answer.headers.get('X-RateLimit-Limit')).toBe(String(requests))
        world.shop.clock.advance(wait * 1000)
        await world.shop.hear()
        const { status } = await world.ask(route, cheap)
        expect(status).not.toBe(429)
      },
    )

  if (route.idempotent)
    testIfWhole(
      'a repetition with the same idempotency key gets the first answer, and another request with this key is refused',
      async () => {
        const { world, call } = await prepared()
        const keyed = { ...call, headers: { ...call.headers, 'Idempotency-Key': 'walk' } }
        const first = await ask(world, keyed)
        expect([first.status, first.headers.get('Idempotent-Replayed')]).toEqual([route.status ?? 200, null])
        const second = await ask(world, keyed)
        expect([second.status, second.headers.get('Idempotent-Replayed')]).toEqual([first.status, 'true'])
        expect(second.json).toEqual(first.json)
        const other = { ...keyed, query: { ...call.query, _walk: 'other' } }
        await refused(world, other, 'idempotency_key_reused', 'another request')
        await world.shop.context.db.kysely
          .updateTable('idempotency_keys')
          .set({ status: null, locked_until: world.shop.clock.now() + 10 * MINUTE })
          .execute()
        await refused(world, keyed, 'idempotency_key_in_use', 'under way')
        const long = { ...call, headers: { 'Idempotency-Key': 'x'.repeat(256) } }
        const { detail } = await refused(world, long, 'validation_error', 'a key of 256 characters')
        expect(detail).toMatchObject([{ loc: ['header', 'Idempotency-Key'], type: 'string_too_long' }])
      },
    )

  testIfWhole('every documented error has its case', () => {
    const shown = new Set<ErrorCode>([
      ...seen,
      ...UNREACHABLE,
      ...(Object.keys(own.elsewhere ?? {}) as ErrorCode[]),
    ])
    expect(errorsOf(route).filter((code) => !shown.has(code))).toEqual([])
  })
}

const namedUser = (route: Route): boolean => route.path.includes('{user_id}')

/** Headers that every answer may have, independent of its content. */
const ordinary =
  /^(content-(type|length|disposition|security-policy|range)|cache-control|vary|accept-ranges|x-content-type-options|x-accel-buffering|cross-origin-resource-policy|referrer-policy|etag)$/

/** Undocumented headers of a success. */
function undeclared(route: Route, { status, headers }: CallAnswer): string[] {
  const declared = new Set(headersOf(route, status).map((name) => name.toLowerCase()))
  return [...headers.keys()].filter((name) => !declared.has(name) && !ordinary.test(name))
}
