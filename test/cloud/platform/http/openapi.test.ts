import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { routes, type RouteId } from '../../../../protocol/contract/routes.ts'
import type { Route } from '../../../../protocol/contract/route.ts'
import { openApiDocument, type Operation } from '../../../../cloud/platform/http/openapi.ts'
import { rootHandlers } from '../../../../cloud/platform/http/docs.ts'
import { stillRuntime } from '../../support/clock.ts'
import { testApp } from '../../support/app.ts'

const document = openApiDocument('http://127.0.0.1:8080', routes)
const operations = Object.values(document.paths).flatMap((item) =>
  Object.entries(item).flatMap(([key, value]) => (key === 'servers' ? [] : [value as Operation])),
)

test('the document is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(structuredClone({ ...document }))
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

test('it has every route, spelled as documented, with its scope, limit and errors', () => {
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual(Object.keys(routes).sort())
  expect(document.paths['/api/v1/owners/hubs/get_hub_health/']?.['get']).toMatchObject({
    'x-required-scope': 'hubs:read',
    'x-requests-per-minute': 360,
    parameters: [{ name: 'hub_id', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } }],
  })
  expect(document.paths['/users/{user_id}/orders']).toMatchObject({
    servers: [{ url: 'http://127.0.0.1:8080' }, { url: 'http://127.0.0.1:8080/api/v1' }],
  })
  for (const [id, route] of Object.entries(routes) as [RouteId, Route][]) {
    const operation = operations.find(({ operationId }) => operationId === id)!
    for (const code of route.errors ?? []) expect(operation['x-error-codes']).toContain(code)
  }
})

test('every reference in it resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)]
  expect(references.length).toBeGreaterThan(20)
  for (const [, name] of references) expect(Object.keys(document.components.schemas)).toContain(name)
})

test('every answer and every body has an example that its own schema accepts', () => {
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
  return testApp({ handlers: rootHandlers(stillRuntime().clock, () => document) })
}

test('GET / says what the service is', async () => {
  const { call } = await pages()
  for (const path of ['/', '/api/v1', '/api/v1/'])
    expect((await call('GET', path)).json).toEqual({
      service: 'larder',
      version: '0.1.0',
      status: 'ok',
      time: '2025-03-01T12:00:00.000Z',
    })
})

test('GET /openapi.json serves it', async () => {
  const { call } = await pages()
  expect((await call('GET', '/openapi.json')).json).toEqual(JSON.parse(JSON.stringify(document)))
})

test('GET /docs is a page with every route, which loads nothing from anywhere', async () => {
  const { call } = await pages()
  const { json, headers } = await call('GET', '/docs')
  const page = json as string
  expect(headers.get('Content-Type')).toBe('text/html; charset=utf-8')
  for (const id of Object.keys(routes)) expect(page).toContain(`id="${id}"`)
  expect(page).not.toMatch(/(src|href)="(https?:)?\/\//)
  expect(headers.get('Content-Security-Policy')).toMatch(/^default-src 'none'; script-src 'sha256-/)
})
