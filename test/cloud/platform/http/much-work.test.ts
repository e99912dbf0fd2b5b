import { expect, test } from 'vitest'
import { structureProblem } from '../../../../cloud/platform/http/read-body.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'

const MIB = 1024 * 1024

/** Names similar to `name`: of equal length, with changed letters. */
const near = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, n) => `${n.toString(36).padStart(4, '0')}${name.slice(4)}`)

test.each([
  [
    'a required field is missing among very many near names',
    'POST',
    '/users/payments/pay',
    JSON.stringify(Object.fromEntries(near('payment_method_id', 40_000).map((name) => [name, 1]))).slice(
      0,
      MIB,
    ),
  ],
  [
    'unknown names are near to known ones',
    'POST',
    '/users/payments/pay',
    JSON.stringify(Object.fromEntries(near('save_payment_method', 30_000).map((name) => [name, 1]))),
  ],
  [
    'lists are 500,000 deep',
    'POST',
    '/users/payments/pay',
    '['.repeat(MIB / 2 - 1) + ']'.repeat(MIB / 2 - 1),
  ],
  [
    'objects are 170,000 deep',
    'POST',
    '/users/payments/pay',
    '{"a":'.repeat(170_000) + '1' + '}'.repeat(170_000),
  ],
  ['a path has 7,000 steps', 'GET', `/${'a/'.repeat(7000)}`, undefined],
  ['a path has one long step', 'GET', `/users/${'walletbalance'.repeat(1000)}`, undefined],
  ['a path of percent signs', 'GET', `/users/${'%25'.repeat(4000)}`, undefined],
  [
    'a query has 4,000 names',
    'GET',
    `/hubs/1/products?${Array.from({ length: 4000 }, (_, n) => `a${n}`).join('&')}`,
    undefined,
  ],
] as const)('a request needs little processor time although %s', async (_what, method, path, body) => {
  const app = await openCloud()
  const token = await app.issuer.token()
  const times: number[] = []
  for (let n = 0; n < 4; n += 1) {
    const before = process.cpuUsage()
    const { status } = await app.call(method, path, { token, ...(body !== undefined && { body }) })
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1000)
    expect(status).toBeLessThan(501)
  }
  // The minimum of several: a busy machine makes some of them slower.
  expect(Math.min(...times)).toBeLessThan(100)
})

test('JSON may have a depth of 64 and 12,000 values, for any content of its strings', () => {
  const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
  expect(structureProblem(deep(64))).toBeUndefined()
  expect(structureProblem(deep(65))).toContain('64')
  const list = (length: number): string => JSON.stringify(Array.from({ length }, () => 1))
  expect(structureProblem(list(12_000))).toBeUndefined()
  expect(structureProblem(list(12_001))).toContain('12000')
  const strings = { a: '[,{'.repeat(20_000), 'b"[': '\\' }
  expect(structureProblem(JSON.stringify([strings, strings]))).toBeUndefined()
})

test('JSON beyond the limits of depth and values is 422 at its place, also in a form', async () => {
  const { call, issuer, key } = await openCloud()
  const fields = JSON.stringify(Object.fromEntries(Array.from({ length: 13_000 }, (_, n) => [`k${n}`, n])))
  const consumer = await call('POST', '/users/payments/pay', { token: await issuer.token(), body: fields })
  expect([consumer.status, errorOf(consumer).detail]).toMatchObject([
    422,
    [{ loc: ['body'], type: 'value_error', msg: expect.stringContaining('at most 12000') as string }],
  ])
  const owner = await call('PUT', '/api/v1/owners/product/1/update_price', {
    key: await key(['inventory:write']),
    body: '['.repeat(100),
  })
  expect([owner.status, errorOf(owner).error.code]).toEqual([422, 'validation_error'])
})
