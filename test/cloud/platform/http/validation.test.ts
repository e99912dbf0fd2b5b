import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { errorOf, openCloud, type TestCloud } from '../../../world/cloud.ts'

const health = '/api/v1/owners/hubs/get_hub_health/'

async function detailOf(app: TestCloud, query: string) {
  const answer = await app.call('GET', health + query, { key: await app.key(['hubs:read']) })
  expect(answer.status).toBe(422)
  expect(errorOf(answer).error.code).toBe('validation_error')
  return errorOf(answer).detail
}

test('an integer in a query is a string of digits', async () => {
  const app = await openCloud()
  for (const value of ['', '1.5', '1e3', '-1', '+1', '0x1', ' 1', '1 ', 'one', 'null', '１'])
    expect(await detailOf(app, `?hub_id=${encodeURIComponent(value)}`)).toEqual([
      {
        loc: ['query', 'hub_id'],
        type: 'int_parsing',
        msg: 'Input should be a valid integer: a whole number, written in digits',
        input: value,
      },
    ])
})

test('any text is either a string of digits or refused', async () => {
  const app = await openCloud()
  const key = await app.key(['hubs:read'])
  await fc.assert(
    fc.asyncProperty(fc.string(), async (value) => {
      app.runtime.clock.advance(60_000)
      const { status } = await app.call('GET', `${health}?hub_id=${encodeURIComponent(value)}`, { key })
      expect(status).not.toBe(500)
      if (!/^\d+$/.test(value)) expect(status).toBe(422)
    }),
    { numRuns: 200 },
  )
})

test('an absent value is missing, and a value out of range is reported with the bound', async () => {
  const app = await openCloud()
  expect(await detailOf(app, '')).toEqual([
    { loc: ['query', 'hub_id'], type: 'missing', msg: 'Field required' },
  ])
  expect(await detailOf(app, '?hub_id=0')).toMatchObject([
    { type: 'greater_than_equal', ctx: { ge: 1 }, input: 0 },
  ])
  expect(await detailOf(app, `?hub_id=${'9'.repeat(30)}`)).toMatchObject([{ type: 'less_than_equal' }])
})

test('the part of a URL after # is not a query, and does not count for an idempotency key', async () => {
  const app = await openCloud()
  const missing = [{ loc: ['query', 'hub_id'], type: 'missing', msg: 'Field required' }]
  expect(await detailOf(app, '#?hub_id=1')).toEqual(missing)
  expect(await detailOf(app, '?_page=1#&hub_id=1')).toEqual(missing)
})

test('the specific code of a bad value is the error code, together with the list of problems', async () => {
  const { call, key } = await openCloud()
  const write = await key(['orders:write'])
  const path = '/api/v1/owners/orders/1/refund'
  const amount = await call('POST', path, { key: write, body: { amount: 0 } })
  expect([amount.status, errorOf(amount).error.code]).toEqual([422, 'invalid_amount'])
  expect(errorOf(amount).detail).toMatchObject([{ loc: ['body', 'amount'], type: 'greater_than_equal' }])
  const destination = await call('POST', path, { key: write, body: { destination: 'Elsewhere' } })
  expect(errorOf(destination).error.code).toBe('invalid_destination')
  expect(errorOf(destination).detail).toMatchObject([{ type: 'literal_error', input: 'Elsewhere' }])
  const orders = '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1'
  const cursor = await call('GET', `${orders}&cursor=abc`, { key: await key(['orders:read']) })
  expect([cursor.status, errorOf(cursor).error.code]).toEqual([400, 'invalid_cursor'])
})

test('an empty body is a missing body, or {} if the body is optional', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token()
  await call('POST', '/users/user/bootstrap', { token, body: { email: 'ada@example.org' } })
  const answer = await call('POST', '/users/payments/pay', {
    token,
    headers: { 'Content-Type': 'application/json' },
  })
  expect(answer.status).toBe(422)
  expect(errorOf(answer).detail).toEqual([{ loc: ['body'], type: 'missing', msg: 'Field required' }])
  const optional = await call('POST', '/users/user/bootstrap', { token })
  expect(optional.status).toBe(201)
})

test('a body that is not an object, or has values of other types, is 422', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token()
  const detail = async (body: unknown) => {
    const answer = await call('POST', '/users/payments/pay', { token, body: JSON.stringify(body) })
    expect(answer.status).toBe(422)
    return errorOf(answer).detail
  }
  for (const body of [[], 'text', 7, null]) expect(await detail(body)).toMatchObject([{ loc: ['body'] }])
  expect(
    await detail({ order_id: '1', payment_method_id: 5, save_payment_method: 'yes', expected_total: 1.5 }),
  ).toMatchObject([
    { loc: ['body', 'order_id'], type: 'int_parsing' },
    { loc: ['body', 'payment_method_id'], type: 'string_type' },
    { loc: ['body', 'save_payment_method'], type: 'bool_parsing' },
    { loc: ['body', 'expected_total'], type: 'int_parsing' },
  ])
  expect(await detail({ order_id: 1, payment_method_id: '' })).toMatchObject([{ type: 'string_too_short' }])
  expect(await detail({ order_id: 1, payment_method_id: 'x'.repeat(256) })).toMatchObject([
    { type: 'string_too_long' },
  ])
  expect(await detail({ order_id: 1, payment_method_id: 'a\0b' })).toMatchObject([
    { loc: ['body', 'payment_method_id'], type: 'value_error' },
  ])
})

test('unknown keys are refused in PUT and ignored in bootstrap', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token()
  const created = await call('POST', '/users/user/bootstrap', {
    token,
    body: { email: 'a@b.co', color: 'red' },
  })
  expect(created.status).toBe(201)
  const put = await call('PUT', '/users/1/orders/1/order_item?hub_id=1', {
    token,
    body: { product_id: 1, quantity: 1, color: 'red' },
  })
  expect(put.status).toBe(422)
  expect(errorOf(put).detail).toMatchObject([{ loc: ['body', 'color'], type: 'extra_forbidden' }])
})

test('a text designed to be slow to validate is validated at once', async () => {
  const app = await openCloud()
  const token = await app.issuer.token({ sub: 'ada' })
  // The maximum length of a body. With backtracking it would take minutes.
  const email = `a@${'.'.repeat(500_000)} `
  expect(await app.call('POST', '/users/user/bootstrap', { token, body: { email } })).toMatchObject({
    status: 422,
  })
  expect((await app.call('GET', `/files/${'/'.repeat(500_000)}x`)).status).not.toBe(200)
})

test('only the first hundred of very many problems are reported', async () => {
  const app = await openCloud()
  const { status, json } = await app.call('PUT', '/api/v1/owners/product/1/update_price', {
    key: await app.key(['inventory:write']),
    body: Object.fromEntries(Array.from({ length: 11_000 }, (_, index) => [`k${index}`, 1])),
  })
  expect(status).toBe(422)
  expect(json).toMatchObject({ detail: { length: 100 } })
})

test('a body of another type is 415, and one over 1 MiB is 413, with or without an announced length', async () => {
  const { app, call, issuer } = await openCloud()
  const token = await issuer.token()
  const other = await call('POST', '/users/user/bootstrap', {
    token,
    body: 'email=a',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  })
  expect([other.status, errorOf(other).error.code]).toEqual([415, 'unsupported_media_type'])
  const large = JSON.stringify({ email: 'x'.repeat(1024 * 1024) })
  const said = await call('POST', '/users/user/bootstrap', {
    token,
    body: large,
    headers: { 'Content-Length': String(large.length) },
  })
  expect([said.status, errorOf(said).error.code]).toEqual([413, 'payload_too_large'])
  const chunk = new TextEncoder().encode('x'.repeat(300_000))
  let sent = 0
  const stream = new ReadableStream({
    pull(controller) {
      sent += 1
      controller.enqueue(chunk)
    },
  })
  const endless = await app.request('/users/user/bootstrap', {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: stream,
    duplex: 'half',
  })
  expect(endless.status).toBe(413)
  expect(sent).toBeLessThan(8)
})

test('invalid Unicode is refused in a body, a query and JSON, because it would be stored as other text', async () => {
  const { call, issuer, app } = await openCloud()
  const token = await issuer.token()
  const half = await call('POST', '/users/user/bootstrap', {
    token,
    body: '{"email": "ada@example.org", "first_name": "\\ud800"}',
  })
  expect([half.status, errorOf(half).detail]).toMatchObject([
    422,
    [{ loc: ['body', 'first_name'], type: 'value_error' }],
  ])
  const latin1 = Buffer.from('{"email": "ada@example.org", "first_name": "Andr\u00e9"}', 'latin1')
  const request = (path: string, headers: object) =>
    app.request(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: latin1,
    })
  const consumer = await request('/users/user/bootstrap', { Authorization: `Bearer ${token}` })
  expect([consumer.status, await consumer.json()]).toMatchObject([
    422,
    { detail: [{ loc: ['body'], type: 'json_invalid' }] },
  ])
  for (const name of ['Andr%E9', '%80'])
    expect((await call('GET', `/hubs/1/products?product_name=${name}`)).status).toBe(422)
  const pair = await call('POST', '/users/user/bootstrap', {
    token,
    body: { email: 'ada@example.org', first_name: 'Ada 😀' },
  })
  expect([pair.status, pair.json]).toMatchObject([201, { first_name: 'Ada 😀' }])
})
