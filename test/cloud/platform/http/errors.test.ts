import { expect, test } from 'vitest'
import { ApiError } from '../../../../cloud/platform/api-error.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'

const REQUEST_ID = /^req_[0-9a-f]{24}$/

test('every error has one shape, with its request id also in a header', async () => {
  const { call } = await openCloud()
  const answer = await call('GET', '/no/such/thing')
  expect(answer.status).toBe(404)
  const error = errorOf(answer)
  expect(error).toEqual({
    error: { code: 'route_not_found', message: 'No such endpoint.' },
    detail: 'No such endpoint.',
    request_id: expect.stringMatching(REQUEST_ID) as string,
  })
  expect(answer.headers.get('X-Request-Id')).toBe(error.request_id)
})

test('every 422 has a list of problems with their place, also if a rule of the shop refuses the value', async () => {
  const { call, key } = await openCloud({
    handlers: {
      'owner.controls.open_bin': () => Promise.reject(new ApiError('cart_empty')),
      'owner.controls.close_bin': () =>
        Promise.reject(ApiError.at(['query', 'bin'], 'bin_not_in_order', { bins: [1] })),
    },
  })
  const options = { key: await key(['controls:write']) }
  const refused = async (action: string) => {
    const answer = await call('POST', `/api/v1/owners/controls/${action}?bin=1&hub=1`, options)
    const { error, detail } = errorOf(answer)
    return [answer.status, error, detail]
  }
  const empty = 'The order has no items.'
  expect(await refused('open_bin')).toEqual([
    422,
    { code: 'cart_empty', message: empty },
    [{ loc: ['body'], msg: empty, type: 'value_error' }],
  ])
  const elsewhere = 'The order has no goods in this bin.'
  expect(await refused('close_bin')).toEqual([
    422,
    { code: 'bin_not_in_order', message: elsewhere, details: { bins: [1] } },
    [{ loc: ['query', 'bin'], msg: elsewhere, type: 'value_error' }],
  ])
})

test('an internal error reveals no internals', async () => {
  const { call, key } = await openCloud({
    handlers: { 'owner.hubs.list': () => Promise.reject(new Error('secret in table hubs')) },
  })
  const answer = await call('GET', '/api/v1/owners/hubs', { key: await key(['hubs:read']) })
  expect(answer.status).toBe(500)
  expect(errorOf(answer).error.code).toBe('internal_error')
  expect(JSON.stringify(answer.json)).not.toContain('secret')
})

test('an answer that breaks its schema is an internal error if answers are checked', async () => {
  const { call, key } = await openCloud({
    handlers: { 'owner.hubs.list': () => Promise.resolve([{ id: 0 } as never]) },
  })
  const answer = await call('GET', '/api/v1/owners/hubs', { key: await key(['hubs:read']) })
  expect(answer.status).toBe(500)
})

test('an error includes its details, and hardware without an answer is 504', async () => {
  const reasons = ['offline', 'timeout']
  const { call, key } = await openCloud({
    handlers: {
      'owner.controls.open_bin': () =>
        Promise.reject(new ApiError('hardware_error', undefined, { reason: reasons.shift() })),
    },
  })
  const path = '/api/v1/owners/controls/open_bin?bin=1&hub=1'
  const options = { key: await key(['controls:write']) }
  const offline = await call('POST', path, options)
  expect([offline.status, errorOf(offline).error.details]).toEqual([502, { reason: 'offline' }])
  const silent = await call('POST', path, options)
  expect([silent.status, errorOf(silent).error.details]).toEqual([504, { reason: 'timeout' }])
})

test('the message of an error about fields names the fields and the problem', () => {
  const item = {
    loc: ['body', 'quantity'],
    msg: 'Value error, the row holds 10 units',
    type: 'value_error',
  } as const
  const error = new ApiError('invalid_quantity', undefined, undefined, [{ ...item, loc: [...item.loc] }])
  expect(error.message).toBe('quantity: the row holds 10 units.')
  expect(new ApiError('invalid_quantity', 'No.', undefined, error.items).message).toBe('No.')
  expect(new ApiError('invalid_quantity').message).toBe('The quantity must be a non-negative integer.')
})

test('a fixed word of a path is not a parameter of another path', async () => {
  const { call } = await openCloud()
  for (const [path, methods] of [
    ['/api/v1/deals/apply-reward', 'POST'],
    ['/api/v1/deals/check-eligibility/', 'POST'],
    ['/api/v1/deals/create-from-owner', 'POST'],
    ['/api/v1/deals/7', 'GET, PUT, DELETE'],
  ] as const)
    for (const method of ['PATCH', 'PUT', 'GET']) {
      if (methods.includes(method)) continue
      const answer = await call(method, path)
      expect([method, path, answer.status, answer.headers.get('Allow')]).toEqual([method, path, 405, methods])
    }
})

test('browsers do not guess types, and caches do not store private answers', async () => {
  const { call, issuer, key } = await openCloud()
  const token = await issuer.token({ email: 'ada@example.org', email_verified: true })
  await call('POST', '/users/user/bootstrap', { token })
  for (const [path, options, cached] of [
    ['/users/user', { token }, 'no-store'],
    ['/users/user', {}, 'no-store'],
    ['/users/user/exists/email?email=ada@example.org', {}, 'no-store'],
    ['/api/v1/owners/hubs/get_hub_health/?hub_id=1', { key: await key(['hubs:read']) }, 'no-store'],
    ['/no/such/thing', {}, null],
  ] as const) {
    const { headers } = await call('GET', path, options)
    expect([path, headers.get('X-Content-Type-Options'), headers.get('Cache-Control')]).toEqual([
      path,
      'nosniff',
      cached,
    ])
    expect(headers.get('Strict-Transport-Security')).toBe(null)
  }
})

test('a trailing slash is ignored, and consumer paths are served at / and /api/v1', async () => {
  const { call, key } = await openCloud()
  const options = { key: await key(['hubs:read']) }
  for (const path of ['/api/v1/owners/hubs', '/api/v1/owners/hubs/'])
    expect((await call('GET', path, options)).status).toBe(200)
  for (const path of ['get_hub_health', 'get_hub_health/'])
    expect((await call('GET', `/api/v1/owners/hubs/${path}?hub_id=1`, options)).status).toBe(200)
  expect((await call('GET', '/owners/hubs', options)).status).toBe(404)
  for (const path of ['/users/user', '/users/user/', '/api/v1/users/user', '/api/v1/users/user/'])
    expect((await call('GET', path)).status).toBe(401)
})

test('an answer with 401 names both schemes', async () => {
  const { call } = await openCloud()
  const answer = await call('GET', '/api/v1/owners/hubs')
  expect(answer.headers.get('WWW-Authenticate')).toBe('Bearer realm="larder", APIKey')
})

test.each([
  ['PostgreSQL ends the connection', Object.assign(new Error('terminating'), { code: '57P01' })],
  ['PostgreSQL is down', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })],
  ['the connection broke', new Error('Connection terminated unexpectedly')],
  ['the disk is full', Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })],
])('an answer with 503 has a time to retry if %s', async (_why, error) => {
  const { call, key } = await openCloud({ handlers: { 'owner.hubs.list': () => Promise.reject(error) } })
  const answer = await call('GET', '/api/v1/owners/hubs', { key: await key(['hubs:read']) })
  expect([answer.status, errorOf(answer).error.code]).toEqual([503, 'service_unavailable'])
  expect(Number(answer.headers.get('Retry-After'))).toBeGreaterThan(0)
})

test('a webhook without any signature is refused before its body is read', async () => {
  const { app } = await openCloud()
  let wasAsked = false
  const body = new ReadableStream({ pull: () => void (wasAsked = true) }, { highWaterMark: 0 })
  const request = new Request('http://larder.test/webhooks/payments', {
    method: 'POST',
    body,
    duplex: 'half',
  })
  const answer = await app.request(request)
  expect([answer.status, wasAsked]).toEqual([400, false])
  expect(await answer.json()).toMatchObject({ error: { code: 'invalid_signature' } })
})
