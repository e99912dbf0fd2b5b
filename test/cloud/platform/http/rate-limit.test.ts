import { digestOf } from '../../../../cloud/platform/credentials/secrets.ts'
import { expect, test, vi } from 'vitest'
import {
  memoryRateLimiter,
  purgeRateLimits,
  SharedRateLimiter,
} from '../../../../cloud/platform/http/rate-limit.ts'
import { defaultLimits } from '../../../../cloud/platform/settings/limits.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { virtualRuntime } from '../../../world/clock.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { testContext } from '../../../world/context.ts'

const hubs = '/api/v1/owners/hubs'

test('a request without a caller or a route reports the limit, and consumes nothing', async () => {
  const { call, key } = await openCloud()
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

test('a key has its limit per route and minute, and every answer reports the rest', async () => {
  const { call, key, runtime } = await openCloud()
  const mine = await key(['hubs:read'])
  const first = await call('GET', hubs, { key: mine })
  expect(first.headers.get('RateLimit-Policy')).toBe('"default";q=90;w=60')
  expect(first.headers.get('RateLimit')).toBe('"default";r=89;t=60')
  expect(first.headers.get('X-RateLimit-Limit')).toBe('90')
  expect(first.headers.get('X-RateLimit-Remaining')).toBe('89')
  for (let count = 2; count <= 90; count += 1) await call('GET', hubs, { key: mine })
  runtime.clock.advance(20_000)
  const refused = await call('GET', hubs, { key: mine })
  expect([refused.status, errorOf(refused).error.code]).toEqual([429, 'rate_limit_exceeded'])
  expect(refused.headers.get('Retry-After')).toBe('40')
  expect(refused.headers.get('X-RateLimit-Remaining')).toBe('0')
  expect((await call('GET', hubs, { key: await key(['hubs:read']) })).status).toBe(200)
  expect((await call('GET', `${hubs}/get_hub_health?hub_id=1`, { key: mine })).status).toBe(200)
  runtime.clock.advance(40_000)
  expect((await call('GET', hubs, { key: mine })).status).toBe(200)
})

test('the limit is checked before validation, and refused credentials consume nothing', async () => {
  const { call, key, issuer } = await openCloud()
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

test('a person has one limit for all tokens', async () => {
  const { call, issuer } = await openCloud()
  const at = async (iat: number) =>
    call('GET', '/users/user', {
      token: await issuer.token({ iat: Date.parse('2025-03-01T11:00:00Z') / 1000 + iat }),
    })
  expect((await at(1)).headers.get('X-RateLimit-Remaining')).toBe('359')
  expect((await at(2)).headers.get('X-RateLimit-Remaining')).toBe('358')
})

onEachDatabase('limits shared by processes', (open) => {
  /** Two processes that exchange their counts on request. */
  async function twoProcesses() {
    const db = await open()
    const runtime = virtualRuntime()
    const context = testContext(db, runtime)
    return { db, runtime, left: new SharedRateLimiter(context), right: new SharedRateLimiter(context) }
  }

  test('two processes share one limit, and a refused call consumes nothing', async () => {
    const { db, runtime, left, right } = await twoProcesses()
    expect(left.take('key:a', 'r', 3)).toBe(1)
    await left.settle()
    expect(right.take('key:a', 'r', 3)).toBe(1)
    await right.settle()
    expect([right.used('key:a', 'r'), right.take('key:a', 'r', 3)]).toEqual([2, 3])
    await right.settle()
    expect([right.take('key:a', 'r', 3), right.used('key:a', 'r')]).toEqual([null, 3])
    expect([left.used('key:b', 'r'), left.take('key:b', 'r', 3), left.take('key:a', 's', 3)]).toEqual([
      0, 1, 1,
    ])
    await left.settle()
    runtime.clock.advance(60_000)
    expect(right.take('key:a', 'r', 3)).toBe(1)
    await right.settle()
    await purgeRateLimits(db, runtime.clock)
    expect(await db.kysely.selectFrom('rate_limits').select(['caller', 'count']).execute()).toEqual([
      // A caller may be a person, so the database stores a digest.
      { caller: digestOf('key:a').slice(0, 32), count: 1 },
    ])
    expect(left.take('key:a', 'r', 3)).toBe(1)
  })

  test('above a limit a caller gets at most the calls that the other process served since its last exchange', async () => {
    const { left, right } = await twoProcesses()
    const calls = (limiter: SharedRateLimiter, times: number): number =>
      Array.from({ length: times }, () => limiter.take('key:a', 'r', 10)).filter((count) => count !== null)
        .length
    expect(calls(left, 6)).toBe(6)
    await left.settle()
    expect(calls(right, 1)).toBe(1)
    await Promise.all([left.settle(), right.settle()])
    // Each process knows the other's calls up to here; later ones are not exchanged yet.
    expect([calls(left, 20), calls(right, 20)]).toEqual([4, 3])
    await left.settle()
    await right.settle()
    expect([calls(left, 5), calls(right, 5)]).toEqual([0, 0])
  })

  test('counts of a process with a fast clock do not disturb the shared limit', async () => {
    const { db, runtime, left, right } = await twoProcesses()
    const ahead = virtualRuntime()
    ahead.clock.advance(3_600_000)
    const wrong = new SharedRateLimiter(testContext(db, ahead))
    wrong.take('key:a', 'r', 3)
    await wrong.settle()
    left.take('key:a', 'r', 3)
    await left.settle()
    right.take('key:a', 'r', 3)
    await right.settle()
    expect(right.used('key:a', 'r')).toBe(2)
    await purgeRateLimits(db, runtime.clock)
    right.take('key:a', 'r', 3)
    await right.settle()
    expect(right.take('key:a', 'r', 3)).toBeNull()
  })

  test('simultaneous counts of both processes add up', async () => {
    const { db, left, right } = await twoProcesses()
    for (let round = 0; round < 5; round += 1) {
      for (const route of ['r', 's', 't']) {
        left.take('key:a', route, 100)
        right.take('key:a', route, 100)
      }
      await Promise.all([left.settle(), right.settle()])
    }
    const rows = await db.kysely.selectFrom('rate_limits').select('count').execute()
    expect(rows).toEqual([{ count: 10 }, { count: 10 }, { count: 10 }])
  })

  test('a call does not wait for the database, and pending counts are stored when it returns', async () => {
    const db = await open()
    const runtime = virtualRuntime()
    let isAway = true
    const away = new Proxy(db, {
      get: (target, name) => {
        if (isAway && name === 'kysely') throw new Error('away')
        return Reflect.get(target, name) as unknown
      },
    })
    const faults: string[] = []
    const limiter = new SharedRateLimiter(
      testContext(away, runtime, { onFault: (_error, during) => void faults.push(during) }),
    )
    const calls = Array.from({ length: 3 }, () => limiter.take('key:a', 'r', 2))
    expect(calls).toEqual([1, 2, null])
    runtime.clock.advance(defaultLimits.rules.rateSettleMs)
    await vi.waitFor(() => expect(faults).toEqual(['counts of calls']))
    isAway = false
    runtime.clock.advance(defaultLimits.rules.rateSettleMs)
    await vi.waitFor(async () => {
      const rows = await db.kysely.selectFrom('rate_limits').select('count').execute()
      expect(rows).toEqual([{ count: 2 }])
    })
    limiter.stop()
  })
})

test('a single process counts in memory by the same rules', () => {
  const runtime = virtualRuntime()
  const limiter = memoryRateLimiter(runtime.clock)
  expect(limiter.take('key:a', 'r', 1)).toBe(1)
  expect(limiter.take('key:a', 'r', 1)).toBeNull()
  expect(limiter.take('key:b', 'r', 1)).toBe(1)
  runtime.clock.advance(60_000)
  expect(limiter.take('key:a', 'r', 1)).toBe(1)
})
