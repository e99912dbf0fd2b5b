import { z } from 'zod'
import { describe, expect, test } from 'vitest'
import type { ValidationItem } from '../../protocol/contract/errors.ts'
import { mountsOf, refusesFields, type Route } from '../../protocol/contract/route.ts'
import { routes, type RouteId } from '../../protocol/contract/routes.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import { errorOf, openCloud, type CallAnswer, type CallOptions, type TestCloud } from '../world/cloud.ts'

const table = Object.entries(routes) as [RouteId, Route][]
const served = table.filter(([id]) => !id.startsWith('demo.'))

let shared: TestCloud | undefined

/** One cloud serves all tests: they ask only whether it refuses a name. Each test has new rate limits. */
async function cloud(): Promise<TestCloud> {
  shared ??= await openCloud()
  shared.runtime.clock.advance(60_000)
  return shared
}

/** The objects that ignore unknown fields, according to the contract (§1, unknown names). */
const LENIENT = new Set([
  'consumer.users.create body',
  'consumer.users.bootstrap body',
  'consumer.users.bootstrap_guest body',
  'owner.deals.check_eligibility body.cart_items',
  'owner.deals.apply_reward body.cart_items',
])

interface Place {
  path: string[]
  isStrict: boolean
}

/** Every object within a schema, by its path without positions in lists. */
function objectsIn(schema: z.core.$ZodType, path: string[] = []): Place[] {
  const { def } = schema as z.ZodType
  if ('innerType' in def) return objectsIn(def.innerType as z.core.$ZodType, path)
  if (def.type === 'array') return objectsIn((def as z.core.$ZodArrayDef).element, path)
  if (def.type === 'union')
    return (def as z.core.$ZodUnionDef).options.flatMap((option) => objectsIn(option, path))
  if (def.type !== 'object') return []
  const { shape, catchall } = def as z.core.$ZodObjectDef
  const isStrict = (catchall as z.ZodType | undefined)?.def.type === 'never'
  return [
    { path, isStrict },
    ...Object.entries(shape).flatMap(([name, field]) => objectsIn(field, [...path, name])),
  ]
}

const placesOf = (route: Route): Place[] => (route.body ? objectsIn(route.body) : [])

async function credentialFor(app: TestCloud, { auth }: Route): Promise<CallOptions> {
  if (auth.kind === 'api' || auth.kind === 'diag') return { key: await app.key([...scopes]) }
  return auth.kind === 'none' ? {} : { token: await app.issuer.token() }
}

const pathOf = (route: Route, query = ''): string =>
  mountsOf(route)[0]!.replaceAll(/\{\w+\}/g, '1') + (query === '' ? '' : `?${query}`)

/** The reported problems. A route that always answers 200 reports them in a sentence. */
const problems = (answer: CallAnswer): unknown =>
  answer.status === 200 ? answer.json : errorOf(answer).detail

/** A body with an object at a path that has one unknown field. */
function bodyWith(schema: z.core.$ZodType, path: readonly string[]): unknown {
  const { def } = schema as z.ZodType
  if ('innerType' in def) return bodyWith(def.innerType as z.core.$ZodType, path)
  if (def.type === 'array') return [bodyWith((def as z.core.$ZodArrayDef).element, path)]
  const [name, ...rest] = path
  if (name === undefined) return { test_unknown: 1 }
  return { [name]: bodyWith((def as z.core.$ZodObjectDef).shape[name]!, rest) }
}

test('every object of every body refuses unknown fields, unless the contract names it', () => {
  const lenient = table.flatMap(([id, route]) =>
    placesOf(route)
      .filter(({ isStrict }) => !isStrict)
      .map(({ path }) => `${id} ${['body', ...path].join('.')}`),
  )
  expect(new Set(lenient)).toEqual(new Set([...LENIENT].filter((place) => !place.includes('guest'))))
})

test('exactly the routes that the contract names ignore unknown fields', () => {
  const ignoring = table.filter(([, route]) => route.ignoresUnknown).map(([id]) => `${id} body`)
  expect(ignoring.toSorted()).toEqual([...LENIENT].filter((place) => place.endsWith(' body')).toSorted())
})

describe.each(served.filter(([, { body }]) => body))('%s', (id, route) => {
  for (const { path } of placesOf(route)) {
    const place = ['body', ...path].join('.')
    const isLenient = LENIENT.has(`${id} ${place}`)
    test(`an unknown field in ${place} is ${isLenient ? 'ignored' : '422 extra_forbidden'}`, async () => {
      const app = await cloud()
      const body = bodyWith(route.body!, path)
      const answer = await app.call(route.method, pathOf(route), {
        ...(await credentialFor(app, route)),
        body,
      })
      const items = answer.status === 422 ? (errorOf(answer).detail as ValidationItem[]) : []
      const extras = items.filter(({ type }) => type === 'extra_forbidden').map(({ loc }) => loc)
      const withoutIndexes = extras.map((loc) => loc.filter((part) => typeof part === 'string'))
      expect(withoutIndexes).toEqual(isLenient ? [] : [['body', ...path, 'test_unknown']])
    })
  }
})

describe.each(served.filter(([, route]) => refusesFields(route)))('%s', (_id, route) => {
  test('a call without a body accepts an empty body, and refuses a field in it', async () => {
    const app = await cloud()
    const credential = await credentialFor(app, route)
    const answer = await app.call(route.method, pathOf(route), { ...credential, body: { confirm: false } })
    if (answer.status === 200) expect(JSON.stringify(problems(answer))).toContain('body.confirm')
    else
      expect([answer.status, problems(answer)]).toEqual([
        422,
        expect.arrayContaining([
          expect.objectContaining({ loc: ['body', 'confirm'], type: 'extra_forbidden' }),
        ]),
      ])
    for (const body of ['', '{}', ' { } ', 'null', '[]']) {
      const empty = await app.call(route.method, pathOf(route), { ...credential, body })
      expect(JSON.stringify(empty.json)).not.toContain('"body"')
    }
  })
})

describe.each(served.filter(([, { interface: part }]) => part === 'owner'))('%s', (_id, route) => {
  test('an unknown name in the query is 422 extra_forbidden, except hub_id, hub and names that begin with _', async () => {
    const app = await cloud()
    const credential = await credentialFor(app, route)
    const ask = (query: string) => app.call(route.method, pathOf(route, query), credential)
    for (const name of ['test_unknown', 'tests[]', 'HUB_ID', 'constructor', '__proto']) {
      const answer = await ask(`${name}=1`)
      const isIgnored = name.startsWith('_')
      const text = JSON.stringify(problems(answer))
      expect([name, text.includes('extra_forbidden') || text.includes('not permitted')]).toEqual([
        name,
        !isIgnored,
      ])
    }
    const ignored = await ask('hub_id=1&hub=1&_=1&_ts=2')
    if (ignored.status < 500)
      expect(JSON.stringify(ignored.json)).not.toMatch(/extra_forbidden|not permitted/)
  })

  for (const [name, field] of Object.entries(route.query?.shape ?? {}))
    test(`the query name ${name} in the wrong case, or cut short, is refused by a message that names it`, async () => {
      const app = await cloud()
      const credential = await credentialFor(app, route)
      // All required parameters are present, so that only the misspelt name is wrong.
      const required = Object.entries(route.query!.shape)
        .filter(([other, each]) => other !== name && !(each as z.ZodType).safeParse(undefined).success)
        .map(([other]) => `${other}=1`)
      const isRequired = !(field as z.ZodType).safeParse(undefined).success
      for (const written of [name.toUpperCase(), `${name}x`, name.replace(/_\w+$/, '')]) {
        if (written === name || ['hub', 'hub_id'].includes(written)) continue
        if (written in route.query!.shape) continue
        const answer = await app.call(
          route.method,
          pathOf(route, [...required, `${written}=1`].join('&')),
          credential,
        )
        const message = answer.status === 200 ? JSON.stringify(answer.json) : errorOf(answer).error.message
        expect([written, answer.status < 500, isRequired || message.includes(written)]).toEqual([
          written,
          true,
          true,
        ])
        if (answer.status !== 200) expect(message).toContain(name)
      }
    })
})

describe.each(served.filter(([, { interface: part }]) => part === 'consumer' || part === 'diag'))(
  '%s',
  (_id, route) => {
    test('an unknown name in the query is ignored', async () => {
      const app = await cloud()
      const answer = await app.call(
        route.method,
        pathOf(route, 'test_unknown=1&test_unknown=2&utm_source[]=x'),
        {
          ...(await credentialFor(app, route)),
        },
      )
      expect(JSON.stringify(answer.json ?? '')).not.toContain('test_unknown')
    })
  },
)

const lists = served.flatMap(([id, route]) =>
  Object.entries(route.query?.shape ?? {})
    .filter(([, field]) =>
      JSON.stringify(z.toJSONSchema(field as z.ZodType, { io: 'input' })).includes('"array"'),
    )
    .map(([name]) => [id, name, route] as const),
)

test.each(lists)('the call %s reads a repeated %s, with [] and with [0], alike', async (_id, name, route) => {
  const app = await cloud()
  const credential = await credentialFor(app, route)
  const required = Object.entries(route.query!.shape)
    .filter(([other, field]) => other !== name && !(field as z.ZodType).safeParse(undefined).success)
    .map(([other]) => `${other}=1&`)
    .join('')
  const answers = await Promise.all(
    [`${name}=x&${name}=y`, `${name}[]=x&${name}[]=y`, `${name}%5B%5D=x&${name}%5B1%5D=y`].map(
      async (list) => {
        const answer = await app.call(route.method, pathOf(route, required + list), credential)
        return [answer.status, errorOf(answer).detail]
      },
    ),
  )
  expect(answers[0]).toMatchObject([422, [{ loc: ['query', name, 0] }, { loc: ['query', name, 1] }]])
  expect(answers).toEqual([answers[0], answers[0], answers[0]])
})

test('a parameter that is repeated with different values is refused on an owner path', async () => {
  const app = await cloud()
  const credential = { key: await app.key([...scopes]) }
  const ask = (query: string) => app.call('GET', `/api/v1/owners/hubs/get_hub_health/?${query}`, credential)
  const twice = await ask('hub_id=1&hub_id=2')
  expect(errorOf(twice).detail).toMatchObject([{ loc: ['query', 'hub_id'], type: 'value_error' }])
  expect((await ask('hub_id=1&hub_id=1')).status).toBe(200)
  expect((await ask('hub_id[]=1')).status).toBe(200)
})

test('a message about an unknown name suggests a similar name, the right place, or all known names', async () => {
  const app = await cloud()
  const key = await app.key([...scopes])
  const messageOf = async (method: string, path: string, body?: object) => {
    const answer = await app.call(method, `/api/v1${path}`, { key, ...(body && { body }) })
    expect(answer.status).toBe(422)
    return errorOf(answer).error.message
  }
  expect(await messageOf('GET', '/owners/events?type=order.refunded')).toContain('Did you mean types?')
  expect(await messageOf('GET', '/owners/alarms?severity=critical')).toContain(
    'Known here: hub_id, state, limit, cursor.',
  )
  expect(await messageOf('POST', '/owners/orders/1/refund', { amount_cents: 100 })).toContain(
    'Did you mean amount?',
  )
  expect(await messageOf('POST', '/owners/orders/1/refund?amount=100')).toContain('It belongs into the body.')
  expect(await messageOf('POST', '/owners/controls/open_bin?hub=1&bin=1', { bin: 2 })).toContain(
    'It belongs into the query.',
  )
  expect(await messageOf('POST', '/deals', { triggers: [{ typ: 'ALWAYS' }] })).toContain(
    'name: Field required',
  )
})
