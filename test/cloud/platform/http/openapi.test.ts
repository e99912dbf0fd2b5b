import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { routes, type RouteId } from '../../../../protocol/contract/routes.ts'
import { mountsOf, type Route } from '../../../../protocol/contract/route.ts'
import { OrderStatus } from '../../../../protocol/model/order-status.ts'
import {
  openApiDocument,
  type Operation,
  descriptionHandlers,
} from '../../../../cloud/platform/http/openapi.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { openCloud } from '../../../world/cloud.ts'

const document = openApiDocument('http://127.0.0.1:8080', routes)
const all = Object.values(document.paths).flatMap((item) => Object.values(item) as Operation[])
const operations = all.filter((operation) => operation['x-same-as'] === undefined)

test('the document is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(structuredClone({ ...document }))
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

test('the document has every route with its documented path, scope, limit and errors', () => {
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(routes).sort())
  expect(document.paths['/api/v1/owners/hubs/get_hub_health/']?.['get']).toMatchObject({
    'x-required-scope': 'hubs:read',
    'x-requests-per-minute': 360,
    parameters: [{ name: 'hub_id', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } }],
  })
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const operation = operations.find(({ operationId }) => operationId === id)!
    for (const code of route.errors ?? []) expect(operation['x-error-codes']).toContain(code)
  }
})

test('the document has every served path, and no two operations with one name', () => {
  const paths = Object.values<Route>(routes).flatMap((route) => mountsOf(route))
  expect(Object.keys(document.paths).sort()).toEqual([...new Set(paths)].sort())
  expect(document.paths['/users/{user_id}/orders']!['get']).toMatchObject({
    operationId: 'consumer.orders.list.at_root',
    'x-same-as': 'consumer.orders.list',
  })
  const ids = all.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

/** Whether a text is a sentence: not empty, with an end. */
const isSentence = (text: unknown): boolean => typeof text === 'string' && /^\S.{3,}/s.test(text)

test('every group and every endpoint has its own description', () => {
  for (const { name, description } of document.tags) {
    expect([name, description]).not.toEqual([name, name])
    expect([name, isSentence(description)]).toEqual([name, true])
  }
  for (const [id, { summary, description }] of Object.entries<Route>(routes))
    expect([id, isSentence(summary), isSentence(description)]).toEqual([id, true, true])
  expect(document.info.license.name).not.toBe('')
})

/** Every property of every component, with its place. */
function* properties(): Generator<[place: string, schema: Record<string, unknown>, isRequired: boolean]> {
  for (const [component, schema] of Object.entries(document.components.schemas))
    for (const part of [schema, ...((schema['oneOf'] ?? []) as Record<string, unknown>[])])
      for (const [name, value] of Object.entries((part['properties'] ?? {}) as Record<string, object>))
        yield [
          `${component}.${name}`,
          value as Record<string, unknown>,
          ((part['required'] ?? []) as string[]).includes(name),
        ]
}

test('every field and every parameter has a sentence', () => {
  const silent = [...properties()].filter(([, { description }]) => !isSentence(description))
  expect(silent.map(([place]) => place)).toEqual([])
  for (const { operationId, parameters = [] } of all)
    for (const { name, description } of parameters)
      expect([operationId, name, isSentence(description)]).toEqual([operationId, name, true])
})

test('every component has a sentence', () => {
  const silent = Object.entries(document.components.schemas).filter(
    ([, { description }]) => !isSentence(description),
  )
  expect(silent.map(([name]) => name)).toEqual([])
})

test('the sentence of a nullable or optional field explains null and absence', () => {
  const isNullable = ({ anyOf, type }: Record<string, unknown>): boolean =>
    [type].flat().includes('null') ||
    ((anyOf ?? []) as { type?: string }[]).some((each) => each.type === 'null')
  const sent = new Set<string>()
  const collect = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value ?? {}).matchAll(/schemas\/(\w+)"/g))
      if (!sent.has(name!)) {
        sent.add(name!)
        collect(document.components.schemas[name!])
      }
  }
  for (const { requestBody } of operations) collect(requestBody)
  const answered = new Set<string>()
  const collectAnswers = (value: unknown): void => {
    for (const [, name] of JSON.stringify(value).matchAll(/schemas\/(\w+)"/g))
      if (!answered.has(name!)) {
        answered.add(name!)
        collectAnswers(document.components.schemas[name!])
      }
  }
  for (const { responses } of operations) collectAnswers(responses)
  const unclear: string[] = []
  for (const [place, schema, isRequired] of properties()) {
    const text = String(schema['description'])
    const [component = ''] = place.split('.')
    if (sent.has(component) && !answered.has(component)) {
      if (!isRequired && !/left out|Default: /.test(text)) unclear.push(`${place} may be left out: ${text}`)
    } else if (isNullable(schema) && !/null/.test(text)) unclear.push(`${place} may be null: ${text}`)
    else if (!isRequired && !/absent|left out/.test(text)) unclear.push(`${place} may be absent: ${text}`)
  }
  for (const { operationId, parameters = [] } of operations)
    for (const { name, required, description } of parameters)
      if (!required && !/left out|Default: /.test(description))
        unclear.push(`${operationId} ${name}: ${description}`)
  expect(unclear).toEqual([])
})

test('the sentence of an amount, a duration or a time has its unit', () => {
  const unitOf = (name: string, { format }: Record<string, unknown>): RegExp | undefined => {
    if (/(_cents|price|_total|amount|savings|revenue|profit|cost)$/.test(name))
      return /cents|%|[Pp]ercent|True/
    if (name.endsWith('_ms')) return /milliseconds/
    if (name.endsWith('_seconds')) return /[Ss]econds/
    if (name.endsWith('temperature')) return /Celsius/
    return format === 'date-time' ? /UTC|ISO 8601/ : undefined
  }
  const without = [...properties()].filter(([place, schema]) => {
    if (!['integer', 'number', 'string'].includes(String(schema['type']))) return false
    return unitOf(place.split('.').at(-1)!, schema)?.test(String(schema['description'])) === false
  })
  expect(without.map(([place, { description }]) => `${place}: ${String(description)}`)).toEqual([])
})

test('every enumeration and every object is a named component, and each value has a sentence', () => {
  const inline: string[] = []
  const visit = (value: unknown, at: string, isRoot = false): void => {
    if (typeof value !== 'object' || value === null) return
    const schema = value as Record<string, unknown>
    if (!isRoot && (typeof schema['properties'] === 'object' || Array.isArray(schema['enum']))) {
      // A field of an object may have this name.
      if (!at.endsWith('/properties')) inline.push(at)
    }
    for (const [key, part] of Object.entries(schema)) if (key !== 'example') visit(part, `${at}/${key}`)
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    // Alternatives of one object that differ only in their required fields.
    const { oneOf, ...rest } = schema
    const parts = (oneOf ?? []) as Record<string, unknown>[]
    visit(rest, name, true)
    for (const part of parts) visit(part, name, true)
  }
  visit(document.paths, 'paths')
  expect(inline).toEqual([])
  for (const [name, schema] of Object.entries(document.components.schemas))
    for (const value of (schema['enum'] as (string | number)[] | undefined) ?? []) {
      const line = new RegExp(`^- \`?${String(value).replaceAll(/[.*]/g, '\\$&')}[ \`].*[:].{4,}`, 'm')
      expect([name, value, schema['description']]).toEqual([name, value, expect.stringMatching(line)])
    }
})

test('each operation lists its own errors, each with its cause', () => {
  for (const operation of all) {
    const errors = Object.entries(operation.responses).filter(([status]) => status >= '400')
    const texts = errors.map(([, { description }]) => description).join('\n')
    for (const code of operation['x-error-codes'])
      expect([operation.operationId, texts]).toEqual([
        operation.operationId,
        expect.stringMatching(new RegExp(`^- \`${code}\`: .{8,}`, 'm')),
      ])
    for (const [, { description }] of errors)
      for (const [, code] of description.matchAll(/^- `(\w+)`/gm))
        expect(operation['x-error-codes']).toContain(code)
  }
})

test('each operation belongs to one audience, and each subject to one audience', () => {
  const audienceOfSubject = new Map<string, string>()
  for (const { operationId, tags } of all) {
    const [audience, subject = audience] = tags as [string, string?]
    expect(['Owner API', 'Customer API', 'Service']).toContain(audience)
    if (operationId.startsWith('owner.')) expect([operationId, audience]).toEqual([operationId, 'Owner API'])
    if (operationId.startsWith('consumer.'))
      expect([operationId, audience]).toEqual([operationId, 'Customer API'])
    expect([subject, audienceOfSubject.get(subject) ?? audience]).toEqual([subject, audience])
    audienceOfSubject.set(subject, audience)
    for (const tag of tags) expect(document.tags.map(({ name }) => name)).toContain(tag)
  }
})

test('states are named types, by number and by name', () => {
  expect(document.components.schemas['ProcessingStatus']).toEqual({
    type: 'integer',
    enum: Object.values(OrderStatus),
    'x-enum-varnames': Object.keys(OrderStatus),
    description: expect.stringContaining('20 QUEUED') as string,
  })
  for (const name of ['ProcessingStatusName', 'PaymentStatus', 'HubStatus', 'DoorLock', 'PaymentMethodType'])
    expect(document.components.schemas[name]).toMatchObject({ type: 'string' })
})

test('every object in an answer or body is a component, for the types of callers', () => {
  for (const { operationId, requestBody, responses } of operations) {
    const contents = [requestBody?.content['application/json'], responses[200]?.content?.['application/json']]
    for (const schema of contents.flatMap((content): Record<string, unknown>[] =>
      content ? [content.schema] : [],
    )) {
      const inner: object = schema['items'] ?? schema
      expect([operationId, 'properties' in inner]).toEqual([operationId, false])
    }
  }
})

test('every answer declares its possible headers', () => {
  const { responses } = operations.find(({ operationId }) => operationId === 'consumer.products.list')!
  expect(Object.keys(responses[200]!.headers)).toEqual([
    'X-Request-Id',
    'RateLimit-Policy',
    'RateLimit',
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'ETag',
    'X-Total-Count',
    'Link',
  ])
  expect(Object.keys(responses[429]!.headers)).toContain('Retry-After')
  for (const { responses: each } of operations)
    for (const { headers } of Object.values(each))
      for (const name of Object.keys(headers)) expect(document.components.headers).toHaveProperty(name)
})

test('the document states the checks of a request: digits, text, one of two', () => {
  const { components } = document
  expect(components.schemas['OwnerInventoryUpdateUpcBody']).toMatchObject({
    properties: { upc: { type: 'string', pattern: String.raw`^\d{12}$` } },
  })
  const identity = components.schemas['ConsumerUsersSetIdentityBody'] as {
    oneOf: { properties: object; required: string[]; additionalProperties: boolean }[]
  }
  expect(
    identity.oneOf.map(({ properties, required, additionalProperties }) => [
      Object.keys(properties).sort(),
      required.toSorted(),
      additionalProperties,
    ]),
  ).toEqual([
    [['identity_token', 'phone_number'], ['identity_token', 'phone_number'], false],
    [['email', 'identity_token'], ['email', 'identity_token'], false],
  ])
  const products = operations.find(({ operationId }) => operationId === 'consumer.products.list')!
  const parameter = (name: string) => products.parameters!.find((each) => each.name === name)!.schema
  expect(parameter('hub_id')).toMatchObject({ type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER })
  const text = new RegExp(parameter('product_name')['pattern'] as string)
  expect([text.test('Crème'), text.test('a\0b')]).toEqual([true, false])
  const patterns = [...JSON.stringify(document).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(
    ([, json]) => JSON.parse(json!) as string,
  )
  const negated = patterns.flatMap((pattern) => pattern.match(/\[\^[^\]]*\]/g) ?? [])
  expect(negated.length).toBeGreaterThan(0)
  for (const letters of negated) expect(letters).toContain(String.raw`\u0000`)
})

test('every number in a request has its bounds', () => {
  const unbound: string[] = []
  const visit = (value: unknown, at: string, seen: readonly string[] = []): void => {
    if (typeof value !== 'object' || value === null) return
    const schema = value as Record<string, unknown>
    const name = typeof schema['$ref'] === 'string' ? schema['$ref'].split('/').at(-1)! : undefined
    if (name !== undefined && !seen.includes(name))
      visit(document.components.schemas[name], `${at} ${name}`, [...seen, name])
    const isNumber = schema['type'] === 'integer' || schema['type'] === 'number'
    if (isNumber && !('enum' in schema) && !('const' in schema)) {
      const hasLeast = 'minimum' in schema || 'exclusiveMinimum' in schema
      if (!hasLeast || !('maximum' in schema)) unbound.push(at)
    }
    for (const [key, part] of Object.entries(schema)) visit(part, `${at}/${key}`, seen)
  }
  for (const { operationId, parameters, requestBody } of operations) {
    for (const { name, schema } of parameters ?? []) visit(schema, `${operationId} ${name}`)
    for (const { schema } of Object.values(requestBody?.content ?? {})) visit(schema, operationId)
  }
  expect(unbound).toEqual([])
})

test('generators find a type in each alternative, and no object has a field with the object’s name', () => {
  const typeless: string[] = []
  const visit = (value: unknown, at: string): void => {
    if (typeof value !== 'object' || value === null) return
    for (const key of ['oneOf', 'anyOf'] as const) {
      const parts = (value as Record<string, Record<string, unknown>[]>)[key]
      if (!Array.isArray(parts)) continue
      const isTyped = parts.every((part) => ['$ref', 'type', 'anyOf', 'oneOf'].some((key) => key in part))
      if (!isTyped || 'properties' in value) typeless.push(`${at}/${key}`)
    }
    for (const [key, part] of Object.entries(value)) visit(part, `${at}/${key}`)
  }
  visit(document.components.schemas, '')
  visit(document.paths, '')
  expect(typeless).toEqual([])
  // Python's generators name variables after types, and after fields.
  const snake = (name: string): string => name.replaceAll(/(?<=.)[A-Z]/g, '_$&').toLowerCase()
  const own = Object.entries(document.components.schemas).filter(
    ([name, schema]) => snake(name) in ((schema['properties'] as object | undefined) ?? {}),
  )
  expect(own.map(([name]) => name)).toEqual([])
})

test('tuples of one type are lists with a fixed length', () => {
  expect(document.components.schemas['HubInfoGeojsonLocation']).toMatchObject({
    properties: { coordinates: { type: 'array', items: { type: 'number' }, minItems: 2, maxItems: 2 } },
  })
})

test('the answers of a deprecated endpoint contain the deprecation and its end', async () => {
  const { call, issuer } = await openCloud()
  const body = { email: 'ada@example.org' }
  const { headers } = await call('POST', '/users/user', { token: await issuer.token(), body })
  expect(headers.get('Deprecation')).toMatch(/^@\d+$/)
  expect(Date.parse(headers.get('Sunset')!)).toBeGreaterThan(
    Number(headers.get('Deprecation')!.slice(1)) * 1000,
  )
  const other = await call('GET', '/users/user', { token: await issuer.token() })
  expect(other.headers.get('Deprecation')).toBe(null)
})

test('every reference in the document resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)]
  expect(references.length).toBeGreaterThan(20)
  for (const [, name] of references) expect(Object.keys(document.components.schemas)).toContain(name)
})

test('every answer and every body has an example that its schema accepts', () => {
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const operation = operations.find(({ operationId }) => operationId === id)!
    const answer = operation.responses[route.status ?? 200]!.content?.['application/json']
    if (answer) expect([id, route.response.safeParse(answer.example).error?.issues]).toEqual([id, undefined])
    const body = operation.requestBody?.content['application/json']
    if (body && route.body)
      expect([id, route.body.safeParse(body.example).error?.issues]).toEqual([id, undefined])
  }
})

async function pages() {
  return openCloud({ handlers: descriptionHandlers(virtualRuntime().clock, () => document) })
}

test('GET / describes the service', async () => {
  const { call } = await pages()
  for (const path of ['/', '/api/v1', '/api/v1/'])
    expect((await call('GET', path)).json).toEqual({
      service: 'larder',
      version: '0.1.0',
      status: 'ok',
      time: '2026-01-01T00:00:00.000Z',
    })
})

test('GET /openapi.json returns the document', async () => {
  const { call } = await pages()
  expect((await call('GET', '/openapi.json')).json).toEqual(JSON.parse(JSON.stringify(document)))
})

test('the description of notice settings states which of them the service follows', () => {
  for (const name of ['Profile', 'ProfilePatch']) {
    const { properties } = document.components.schemas[name] as { properties: Record<string, unknown> }
    const described = JSON.stringify(properties['notifications'])
    expect(described).toContain('devices that are registered for push')
    expect(described).toContain('this service mails nothing to customers')
    expect(described).toContain('this service sends no text messages')
  }
})
