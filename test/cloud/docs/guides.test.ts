import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { documentOf, type Description } from '../../../cloud/docs/page/document.ts'
import { errorGuide } from '../../../cloud/docs/page/error-guide.ts'
import { limitsTable } from '../../../cloud/docs/page/limits-table.ts'
import { openApiDocument } from '../../../cloud/platform/http/openapi.ts'
import { routes } from '../../../protocol/contract/routes.ts'
import { errorCodeNames } from '../../../protocol/model/error-codes.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { roleNames, scopes } from '../../../protocol/model/scopes.ts'
import { testCards } from '../../../protocol/model/test-cards.ts'
import { eventTypes } from '../../../protocol/model/event-types.ts'

const docs = resolve(import.meta.dirname, '../../../cloud/docs')
const names = readdirSync(join(docs, 'guides')).toSorted()
const operating = readdirSync(join(docs, 'operating')).toSorted()
const guide = (part: string): string => {
  const name = names.find((each) => each.includes(part))!
  return readFileSync(join(docs, 'guides', name), 'utf8')
}
const description = openApiDocument('http://larder.test', routes) as unknown as Description

test('every subject for callers has a guide with a title', () => {
  expect(names.map((name) => name.replace(/^\d\d-|\.md$/g, '')).join(' ')).toBe(
    'first-sale credentials idempotency paging errors limits orders own-payments webhooks events reports testing going-live identity-providers changes',
  )
  for (const name of names) expect(guide(name)).toMatch(/^# [A-Z]/)
  expect(operating.map((name) => name.replace(/^\d\d-|\.md$/g, '')).join(' ')).toBe(
    'install configure watch back-up-and-restore replace-a-board rotate-secrets silent-hub money brokers upgrade doctor move-and-retire beyond-one-installation growth',
  )
  for (const name of operating)
    expect(readFileSync(join(docs, 'operating', name), 'utf8')).toMatch(/^# [A-Z]/)
})

test('the guide on errors has every code with its cause and its remedy', () => {
  const text = errorGuide()
  for (const code of errorCodeNames)
    expect(text).toMatch(new RegExp(`^\\| \`${code}\` \\| .{4,} \\| .{4,} \\|$`, 'm'))
})

test('the diagram and the table of an order’s life have every status', () => {
  const picture = readFileSync(join(docs, 'page/orders.svg'), 'utf8')
  for (const [name, code] of Object.entries(OrderStatus)) {
    expect(picture).toContain(`>${name}</text><text class="code"`)
    expect(guide('orders')).toContain(`| ${code} | ${name} |`)
  }
})

test('the guides name every role, type of event and rate limit', () => {
  for (const role of roleNames) expect(guide('credentials')).toContain(`\`${role}\``)
  for (const type of eventTypes) {
    const [group, what] = type.split('.')
    expect(guide('events')).toMatch(new RegExp(`\`(${group})?\\.${what}\``))
  }
  const limits = limitsTable(description)
  for (const allowance of ['| 90 |', '| 20 |', '| 10 |', '| not limited |', '| 360 | all others |'])
    expect(limits).toContain(allowance)
  expect(guide('testing')).toContain('{{cards}}')
  expect(Object.keys(testCards)).toHaveLength(10)
  // The scopes in samples exist.
  for (const [, list] of guide('credentials').matchAll(/--scopes (\S+)/g))
    for (const scope of list!.split(',')) expect(scopes).toContain(scope)
})

test('the page shows each endpoint once, the guides before them, and the visitor’s own ids in examples', () => {
  const guides = [
    { group: 'Guides', title: 'Webhooks', text: 'How to be told.' },
    { group: 'Operating', title: 'Watch', text: 'Each day.' },
  ] as const
  const visitor = { apiKey: 'lk_x', token: 'a', userId: 41, hubId: 2, productId: 7 }
  const shown = documentOf(description, guides, {
    baseUrl: 'http://here',
    ...visitor,
  }) as unknown as Description & {
    'x-tagGroups': { name: string; tags: string[] }[]
  }
  expect(shown.servers).toEqual([{ url: 'http://here' }])
  expect(shown.tags[0]).toMatchObject({ 'x-displayName': 'Webhooks', description: 'How to be told.' })
  expect(shown['x-tagGroups'].map(({ name }) => name)).toEqual([
    'Guides',
    'Operating',
    'Owner API',
    'Customer API',
    'Service',
  ])
  for (const [, item] of Object.entries(shown.paths))
    for (const { tags } of Object.values(item)) expect([tags, tags.length]).toEqual([tags, 1])
  const grouped = shown['x-tagGroups'].flatMap(({ tags }) => tags)
  expect(grouped.toSorted()).toEqual(shown.tags.map(({ name }) => name).toSorted())
  expect(shown.info.description).toMatch(/^Begin with \*\*\[Webhooks\]\(#tag\/guide-webhooks\)\*\*/)
  expect(new Set(shown.tags.map(({ name }) => name)).size).toBe(shown.tags.length)
  const operations = Object.values(shown.paths).flatMap((item) => Object.values(item))
  expect(operations).toHaveLength(Object.keys(routes).length)
  const item = operations.find(({ operationId }) => operationId === 'consumer.orders.set_item')!
  expect(item.parameters).toContainEqual(expect.objectContaining({ name: 'user_id', example: 41 }))
  expect(item.requestBody!.content['application/json']!.example).toMatchObject({ product_id: 7 })
})
