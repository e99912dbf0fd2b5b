import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { z } from 'zod'
import { openApiDocument, type Operation } from '../../cloud/platform/http/openapi.ts'
import { rateClasses, ratesOf, type Route } from '../../protocol/contract/route.ts'
import { routes } from '../../protocol/contract/routes.ts'

const document = openApiDocument('https://larder.example', routes)
const operations = Object.values(document.paths).flatMap((item) => Object.values(item) as Operation[])
const operationOf = (id: string): Operation => operations.find(({ operationId }) => operationId === id)!

test('the description of each endpoint with its own limit states the limit and the counted caller', () => {
  for (const [id, route] of Object.entries<Route>(routes)) {
    const [rate] = ratesOf(route)
    const { requests, by } = rateClasses[rate]
    if (rate === 'standard' || requests === Infinity) continue
    const { description } = operationOf(id)
    expect([id, description]).toEqual([id, expect.stringContaining(`${requests} requests a minute`)])
    if (by === 'address') expect([id, description]).toEqual([id, expect.stringContaining('each network')])
  }
})

test('the guide names the endpoints with limits per network', () => {
  const guide = readFileSync('cloud/docs/guides/06-limits.md', 'utf8')
  for (const name of ['exists', 'exists/phone', 'exists/email', 'identity-id', 'hub_id'])
    expect(guide).toContain(`\`${name}\``)
})

test('the description of every optional hub_id states that a call without it means all hubs', () => {
  const optional = Object.entries<Route>(routes).filter(([, { query }]) => {
    const field = query?.shape['hub_id'] as z.ZodType | undefined
    return field?.safeParse(undefined).success === true
  })
  expect(optional.length).toBeGreaterThan(3)
  for (const [id] of optional) {
    const parameter = operationOf(id).parameters?.find(({ name }) => name === 'hub_id')
    expect([id, parameter?.description]).toEqual([id, expect.stringContaining('every hub')])
  }
})
