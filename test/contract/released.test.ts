import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { openApiDocument } from '../../cloud/platform/http/openapi.ts'
import { routes } from '../../protocol/contract/routes.ts'
import { breaks, componentsIn, read, reliedOn, written } from './released.ts'

const contract = resolve(import.meta.dirname, '../../protocol/contract')
const path = join(contract, 'released.txt')
const document = openApiDocument('https://larder.example', routes)
const now = reliedOn(document)
// The person who releases a version records the interface that callers may rely on.
if (process.env['RELEASE'] === '1') writeFileSync(path, written(now))
const before = read(readFileSync(path, 'utf8'))
/** The present interface, with the names of the release. */
const compared = reliedOn(document, componentsIn(before))

/** Breaking changes in the changelog: lines below a heading `### Breaking`, each in backticks. */
function named(changelog: string): Set<string> {
  const sections = changelog.split(/^##+ /m).filter((section) => section.startsWith('Breaking'))
  return new Set(sections.flatMap((section) => [...section.matchAll(/`([^`]+)`/g)].map(([, line]) => line!)))
}

test('the interface is compatible with the release, or the changelog names each break', () => {
  const allowed = named(readFileSync(join(contract, 'CHANGELOG.md'), 'utf8'))
  expect(breaks(before, compared).filter((line) => !allowed.has(line))).toEqual([])
})

test('a break is found at any place, and an addition is not a break', () => {
  const change = (make: (copy: typeof document) => void): string[] => {
    const copy = structuredClone(document)
    make(copy)
    return breaks(now, reliedOn(copy))
  }
  const order = (copy: typeof document) =>
    copy.components.schemas['Order'] as { properties: Record<string, object> }
  const at = (copy: typeof document, endpoint: string, method: string) =>
    copy.paths[`/api/v1${endpoint}`]![method] as { parameters: object[]; responses: Record<string, unknown> }

  expect(change((copy) => delete copy.paths['/api/v1/users/wallet/balance'])).toContain(
    'GET /api/v1/users/wallet/balance',
  )
  expect(change((copy) => delete order(copy).properties['bins'])).toEqual(['Order.bins![]: integer'])
  expect(change((copy) => (order(copy).properties['total'] = { type: 'string' }))).toEqual([
    'Order.total!: integer',
  ])
  expect(change((copy) => delete at(copy, '/users/user', 'post').responses['201'])).toContain(
    'POST /api/v1/users/user < 201',
  )
  const parameter = { name: 'why', in: 'query', required: true, schema: { type: 'string' }, description: '' }
  expect(change((copy) => (at(copy, '/owners/hubs', 'get').parameters = [parameter]))).toEqual([
    'GET /api/v1/owners/hubs > query.why!: string',
  ])
  expect(
    change((copy) => {
      const body = copy.components.schemas['ConsumerPaymentsPayBody'] as {
        properties: object
        required: string[]
      }
      Object.assign(body.properties, { why: { type: 'string' } })
      body.required.push('why')
    }),
  ).toEqual(['ConsumerPaymentsPayBody.why!: string'])
  expect(
    change((copy) => (copy.components.schemas['PaymentStatus'] as { enum: string[] }).enum.shift()),
  ).toEqual(['PaymentStatus: "unpaid"'])

  expect(
    change((copy) => {
      const body = copy.components.schemas['ConsumerPaymentsPayBody'] as { required: string[] }
      body.required = body.required.filter((name) => name !== 'order_id')
    }),
  ).toEqual([])
  expect(change((copy) => (order(copy).properties['colour'] = { type: 'string' }))).toEqual([])
  expect(
    change((copy) => (at(copy, '/owners/hubs', 'get').parameters = [{ ...parameter, required: false }])),
  ).toEqual([])
  expect(change((copy) => (copy.paths['/api/v1/owners/new'] = copy.paths['/api/v1/owners/hubs']!))).toEqual(
    [],
  )
})

test('a written interface is read again unchanged', () => {
  expect(read(written(now))).toEqual(now)
})

test('the changelog names a break by its line', () => {
  const changelog =
    '## 0.2.0\n\n### Breaking\n\n- `Order.bins![]: integer`: is `bin` now.\n\n### Routes\n\n- `x`\n'
  expect(named(changelog)).toEqual(new Set(['Order.bins![]: integer', 'bin']))
})
