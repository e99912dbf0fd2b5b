import { expect, test } from 'vitest'
import {
  databaseRateLimiter,
  memoryRateLimiter,
  purgeRateLimits,
} from '../../../../cloud/platform/http/rate-limit.ts'
import { errorOf, testApp } from '../../support/app.ts'
import { stillRuntime } from '../../support/clock.ts'
import { onEachDatabase } from '../../support/database.ts'

const hubs = '/api/v1/owners/hubs'

test('what has no caller or no route says what the limit is, and takes nothing from anybody', async () => {
  const { call, key } = await testApp()
  const mine = await key(['hubs:read'])
  const told = async (method: string, at: string, as?: string) => {
    const answer = await call(method, at, as === undefined ? {} : { key: as })
    const { headers } = answer
    expect(headers.get('RateLimit-Policy')).toBe(`"default";q=${headers.get('X-RateLimit-Limit')};w=60`)
    expect(headers.get('RateLimit')).toContain(`r=${headers.get('X-RateLimit-Remaining')};`)
    return [answer.status, headers.get('X-RateLimit-Limit'), headers.get('X-RateLimit-Remaining')]
  }
  for (let n = 0; n < 3; n++) {
    expect(await told('GET', hubs)).toEqual([401, '90', '90'])
    expect(await told('GET', hubs, 'lk_nobody00_x')).toEqual([401, '90', '90'])
    expect(await told('GET', '/api/v1/nowhere', mine)).toEqual([404, '360', '360'])
    expect(await told('DELETE', hubs, mine)).toEqual([405, '360', '360'])
  }
  expect(await told('GET', hubs, mine)).toEqual([200, '90', '89'])
})

test('a key has its allowance per route and minute, and every answer says what is left', async () => {
  const { call, key, runtime } = await testApp()
  const mine = await key(['hubs:read'])
  const first = await call('GET', hubs, { key: mine })
  expect(first.headers.get('RateLimit-Policy')).toBe('"default";q=90;w=60')
  expect(first.headers.get('RateLimit')).toBe('"default";r=89;t=60')
  expect(first.headers.get('X-RateLimit-Limit')).toBe('90')
  expect(first.headers.get('X-RateLimit-Remaining')).toBe('89')
  for (let count = 2; count <= 90; count += 1) await call('GET', hubs, { key: mine })
  runtime.advance(20_000)
  const refused = await call('GET', hubs, { key: mine })
  expect([refused.status, errorOf(refused).error.code]).toEqual([429, 'rate_limit_exceeded'])
  expect(refused.headers.get('Retry-After')).toBe('40')
  expect(refused.headers.get('X-RateLimit-Remaining')).toBe('0')
  expect((await call('GET', hubs, { key: await key(['hubs:read']) })).status).toBe(200)
  expect((await call('GET', `${hubs}/get_hub_health?hub_id=1`, { key: mine })).status).toBe(200)
  runtime.advance(40_000)
  expect((await call('GET', hubs, { key: mine })).status).toBe(200)
})

test('the limit comes before validation, and refused credentials do not consume', async () => {
  const { call, key, issuer } = await testApp()
  const mine = await key(['hubs:read'])
  const path = `${hubs}/get_hub_health?hub_id=x`
  const answer = await call('GET', path, { key: mine })
  expect([answer.status, answer.headers.get('X-RateLimit-Remaining')]).toEqual([422, '359'])
  for (let count = 0; count < 5; count += 1) {
    expect((await call('GET', path, { key: `${mine.slice(0, -1)}!` })).status).toBe(401)
    expect((await call('GET', path, { token: await issuer.token() })).status).toBe(403)
  }
  const scopeless = await call('GET', path, { key: await key(['orders:read']) })
  expect([scopeless.status, scopeless.headers.get('X-RateLimit-Remaining')]).toEqual([403, '360'])
  expect((await call('GET', path, { key: mine })).headers.get('X-RateLimit-Remaining')).toBe('358')
})

test('a person has one allowance, whatever the token', async () => {
  const { call, issuer } = await testApp()
  const at = async (iat: number) =>
    call('GET', '/users/user', {
      token: await issuer.token({ iat: Date.parse('2025-03-01T11:00:00Z') / 1000 + iat }),
    })
  expect((await at(1)).headers.get('X-RateLimit-Remaining')).toBe('359')
  expect((await at(2)).headers.get('X-RateLimit-Remaining')).toBe('358')
})

onEachDatabase('limits shared by processes', (open) => {
  test('two processes take from one allowance, and a refused call takes nothing', async () => {
    const db = await open()
    const runtime = stillRuntime()
    const [left, right] = [databaseRateLimiter(db, runtime.clock), databaseRateLimiter(db, runtime.clock)]
    expect(await left.take('key:a', 'r', 3)).toBe(1)
    expect(await right.take('key:a', 'r', 3)).toBe(2)
    expect(await left.take('key:a', 'r', 3)).toBe(3)
    expect(await right.take('key:a', 'r', 3)).toBeNull()
    expect([await left.used('key:a', 'r'), await left.used('key:b', 'r')]).toEqual([3, 0])
    expect(await left.take('key:b', 'r', 3)).toBe(1)
    expect(await left.take('key:a', 's', 3)).toBe(1)
    runtime.advance(60_000)
    expect(await right.take('key:a', 'r', 3)).toBe(1)
    await purgeRateLimits(db, runtime.clock)
    expect(await db.kysely.selectFrom('rate_limits').select('caller').execute()).toEqual([
      { caller: 'key:a' },
    ])
    expect(await left.take('key:a', 'r', 3)).toBe(2)
  })

  test('calls at the same instant never exceed it', async () => {
    const limiter = databaseRateLimiter(await open(), stillRuntime().clock)
    const counts = await Promise.all(Array.from({ length: 30 }, () => limiter.take('key:a', 'r', 10)))
    expect(counts.filter((count) => count !== null).sort((a, b) => a - b)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })
})

test('one process counts in memory by the same rules', async () => {
  const runtime = stillRuntime()
  const limiter = memoryRateLimiter(runtime.clock)
  expect(await limiter.take('key:a', 'r', 1)).toBe(1)
  expect(await limiter.take('key:a', 'r', 1)).toBeNull()
  expect(await limiter.take('key:b', 'r', 1)).toBe(1)
  runtime.advance(60_000)
  expect(await limiter.take('key:a', 'r', 1)).toBe(1)
})
