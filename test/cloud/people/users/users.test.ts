import { expect, test } from 'vitest'
import { errorOf, openCloud } from '../../../world/cloud.ts'

const bootstrap = '/users/user/bootstrap'
const guest = '/users/user/bootstrap/guest'

test('an identity has one user for any number of simultaneous and repeated calls', async () => {
  const { call, issuer, context } = await openCloud()
  const token = await issuer.token()
  const body = { email: 'ada@example.org', first_name: 'Ada', default_hub_id: 1 }
  const answers = await Promise.all([1, 2, 3].map(() => call('POST', bootstrap, { token, body })))
  for (const answer of answers) {
    expect(answer.status).toBe(201)
    expect(answer.json).toEqual({
      user_id: 1,
      identity_id: 'ada',
      is_anonymous: false,
      email: 'ada@example.org',
      email_verified: false,
      phone_number: null,
      phone_verified: false,
      first_name: 'Ada',
      last_name: null,
      profile_image_url: null,
      selected_hub_id: null,
      default_hub_id: 1,
      created_at: '2026-01-01T00:00:00.000Z',
      updated_at: '2026-01-01T00:00:00.000Z',
    })
  }
  expect(await context.db.kysely.selectFrom('users').selectAll().execute()).toHaveLength(1)
})

test('verified claims of the token take precedence over the body', async () => {
  const { call, issuer } = await openCloud()
  const body = { email: 'body@example.org', phone_number: '+14155550100' }
  const verified = { email: 'token@example.org', email_verified: true, phone_number: '+14155550199' }
  const one = await call('POST', bootstrap, { token: await issuer.token({ sub: 'one', ...verified }), body })
  expect(one.json).toMatchObject({ email: 'token@example.org', phone_number: '+14155550199' })
  const unverified = { email: 'token@example.org' }
  const two = await call('POST', bootstrap, {
    token: await issuer.token({ sub: 'two', ...unverified }),
    body,
  })
  expect(two.json).toMatchObject({ email: 'body@example.org', phone_number: '+14155550100' })
  const three = await call('POST', bootstrap, { token: await issuer.token({ sub: 'three', ...verified }) })
  expect([three.status, three.json]).toEqual([201, expect.objectContaining({ email: 'token@example.org' })])
})

test('the number of a retired hub stops no new user, who has no default hub then', async () => {
  const { call, issuer, context } = await openCloud()
  const retired = { hub_status: 'retired', retired_at: 0 } as const
  await context.db.kysely.updateTable('hubs').set(retired).where('id', '=', 1).execute()
  const token = await issuer.token()
  const made = await call('POST', bootstrap, { token, body: { email: 'ada@example.org', default_hub_id: 1 } })
  expect([made.status, made.json]).toEqual([201, expect.objectContaining({ default_hub_id: null })])
  const chosen = await call('POST', '/users/user/hub/1', { token })
  expect([chosen.status, errorOf(chosen).error]).toEqual([
    409,
    expect.objectContaining({
      code: 'hub_not_accepting_orders',
      message: 'Hub 1 is retired. Choose another hub.',
    }),
  ])
})

test('at least one valid contact is required', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token()
  const none = await call('POST', bootstrap, { token, body: { first_name: 'Ada' } })
  expect([none.status, errorOf(none).detail]).toEqual([
    422,
    [expect.objectContaining({ loc: ['body'], type: 'value_error' })],
  ])
  for (const body of [{ phone_number: '4155550100' }, { email: 'ada' }, { email: 'a@b.co', first_name: ' ' }])
    expect((await call('POST', bootstrap, { token, body })).status).toBe(422)
  const hub = await call('POST', bootstrap, { token, body: { email: 'a@b.co', default_hub_id: 99 } })
  expect([hub.status, errorOf(hub).error.code]).toEqual([404, 'hub_not_found'])
})

test('a guest is the user of an anonymous identity', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token({ sub: 'guest-1', anonymous: true })
  const first = await call('POST', guest, { token })
  expect([first.status, first.json]).toEqual([
    201,
    expect.objectContaining({ is_anonymous: true, identity_id: 'guest-1' }),
  ])
  expect((await call('POST', guest, { token })).json).toEqual(first.json)
  const named = await call('POST', guest, { token: await issuer.token() })
  expect([named.status, errorOf(named).error.code]).toEqual([403, 'forbidden'])
})

test('an identity that is no longer a guest keeps its user', async () => {
  const { call, issuer, runtime } = await openCloud()
  await call('POST', guest, { token: await issuer.token({ anonymous: true }) })
  runtime.clock.advance(1000)
  const { json } = await call('POST', bootstrap, {
    token: await issuer.token({ email: 'ada@example.org', email_verified: true }),
  })
  expect(json).toMatchObject({
    user_id: 1,
    is_anonymous: false,
    email: 'ada@example.org',
    updated_at: '2026-01-01T00:00:01.000Z',
  })
})

test('GET user shows the user with its hub, the selected before the default one', async () => {
  const { call, issuer, context } = await openCloud()
  const token = await issuer.token()
  const absent = await call('GET', '/users/user', { token })
  expect([absent.status, errorOf(absent).error.code]).toEqual([404, 'user_not_found'])
  await call('POST', bootstrap, { token, body: { email: 'ada@example.org' } })
  expect((await call('GET', '/users/user', { token })).json).toMatchObject({ user_id: 1, hub: null })
  await context.db.kysely.updateTable('users').set({ default_hub_id: 1 }).execute()
  expect((await call('GET', '/users/user', { token })).json).toMatchObject({
    hub: {
      id: 1,
      name: 'Hub 1',
      street_address_1: '1 Main Street',
      street_address_2: null,
      city: 'Springfield',
      state: 'IL',
      // The hub has never been connected.
      hub_status: 'inactive',
    },
  })
  await context.db.kysely.updateTable('users').set({ selected_hub_id: 2 }).execute()
  expect((await call('GET', '/users/user', { token })).json).toMatchObject({ hub: { id: 2 } })
})

test('the deprecated creation returns whether the user is new', async () => {
  const { call, issuer } = await openCloud()
  const token = await issuer.token()
  const body = { email: 'ada@example.org', first_name: 'Ada' }
  const first = await call('POST', '/users/user', { token, body })
  expect([first.status, first.json]).toEqual([
    201,
    expect.objectContaining({ user_id: 1, first_name: 'Ada' }),
  ])
  const second = await call('POST', '/users/user', { token, body: { ...body, first_name: 'Eve' } })
  expect([second.status, second.json]).toEqual([200, first.json])
  expect(
    (await call('POST', '/users/user', { token: await issuer.token({ sub: 'x' }), body: {} })).status,
  ).toBe(422)
})

test('a bootstrap stores its device, and changes nothing else of an existing user', async () => {
  const { call, issuer, context } = await openCloud()
  const token = await issuer.token()
  for (const device_uuid of ['phone', 'tablet', undefined])
    await call('POST', bootstrap, {
      token,
      body: { email: 'ada@example.org', first_name: device_uuid, device_uuid },
    })
  expect(await context.db.kysely.selectFrom('users').select(['first_name', 'device_uuid']).execute()).toEqual(
    [{ first_name: 'phone', device_uuid: 'tablet' }],
  )
})

test('the existence of a user can be checked by phone number or e-mail, in any notation', async () => {
  const { call, issuer } = await openCloud()
  const verified = { email: 'Ada@Example.org', email_verified: true, phone_number: '+14155550100' }
  await call('POST', bootstrap, { token: await issuer.token(verified) })
  const ask = async (path: string, token?: string) =>
    (await call('GET', `/users/user/exists${path}`, token === undefined ? {} : { token })).json
  expect(await ask('/phone?phone_number=%2B14155550100')).toEqual({ exists: true })
  expect(await ask('/phone?phone_number=+14155550100')).toEqual({ exists: true })
  expect(await ask('/phone?phone_number=%2B14155550199')).toEqual({ exists: false })
  expect(await ask('/email?email=ADA@example.ORG')).toEqual({ exists: true })
  expect(await ask('/email?email=eve@example.org')).toEqual({ exists: false })
  const eve = await issuer.token({ sub: 'eve' })
  await call('POST', bootstrap, { token: eve, body: { email: 'eve@example.org' } })
  expect(await ask('?phone_number=%2B14155550100', eve)).toEqual({ exists: true, user_id: 1 })
  expect(await ask('?phone_number=%2B14155550199', eve)).toEqual({ exists: false, user_id: null })
  for (const path of ['/phone?phone_number=4155550100', '/email?email=ada', '/phone', '/email'])
    expect((await call('GET', `/users/user/exists${path}`)).status).toBe(422)
})

test('a caller without a credential may check ten times a minute per address', async () => {
  const { call, runtime } = await openCloud()
  const ask = async () => (await call('GET', '/users/user/exists/email?email=ada@example.org')).status
  for (let count = 0; count < 10; count += 1) expect(await ask()).toBe(200)
  expect(await ask()).toBe(429)
  runtime.clock.advance(60_000)
  expect(await ask()).toBe(200)
})

test('a caller with a credential may check ten times a minute per address too, and guests learn no number', async () => {
  const { call, issuer, runtime } = await openCloud()
  await call('POST', bootstrap, { token: await issuer.token({ phone_number: '+14155550100' }) })
  const ask = async (sub: string) => {
    const token = await issuer.token({ sub, anonymous: true })
    return call('GET', '/users/user/exists?phone_number=%2B14155550100', { token })
  }
  const stranger = await ask('guest-1')
  expect([stranger.status, stranger.json]).toEqual([200, { exists: true }])
  await call('POST', guest, { token: await issuer.token({ sub: 'guest-1', anonymous: true }) })
  expect((await ask('guest-1')).json).toEqual({ exists: true })
  for (let count = 3; count <= 10; count += 1) expect((await ask(`guest-${count}`)).status).toBe(200)
  const refused = await ask('guest-11')
  expect([refused.status, refused.headers.get('X-RateLimit-Limit')]).toEqual([429, '10'])
  runtime.clock.advance(60_000)
  expect((await ask('guest-11')).status).toBe(200)
})

test('a network may create twenty guests a minute by any route, and users with a verified contact do not count', async () => {
  let address = '2001:db8::1'
  const { call, issuer, runtime } = await openCloud({ addressOf: () => address })
  let made = 0
  const ask = async (path: string, claims: Record<string, unknown> = { anonymous: true }, body?: object) => {
    made += 1
    address = `2001:db8::${made}`
    const token = await issuer.token({ sub: `guest-${made}`, ...claims })
    return (await call('POST', path, { token, ...(body && { body }) })).status
  }
  const contact = { email: 'ada@example.org' }
  for (let n = 0; n < 10; n += 1) expect(await ask(guest)).toBe(201)
  for (let n = 0; n < 5; n += 1) {
    expect(await ask('/users/user/bootstrap', undefined, contact)).toBe(201)
    expect(await ask('/users/user', undefined, contact)).toBe(201)
  }
  expect(await ask(guest)).toBe(429)
  expect(await ask('/users/user/bootstrap', undefined, contact)).toBe(429)
  expect(await ask('/users/user', undefined, contact)).toBe(429)
  expect(await ask('/users/user/bootstrap', {}, contact)).toBe(201)
  address = '2001:db8:0:1::1'
  const token = await issuer.token({ sub: 'elsewhere', anonymous: true })
  expect((await call('POST', guest, { token })).status).toBe(201)
  runtime.clock.advance(60_000)
  expect(await ask(guest)).toBe(201)
})
