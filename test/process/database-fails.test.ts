import { Client } from 'pg'
import { expect, onTestFinished } from 'vitest'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { holdsWithin, sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { startCloud, type CloudProgram } from '../cloud/support/program.ts'
import { openShop } from '../world/shop.ts'
import { relayTo } from '../support/relay.ts'
import { service } from '../support/services.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

const runtime = systemRuntime()
const { clock } = runtime
/** Extra time for calls that the service's own limits delay. */
const SLACK_MS = 2500
const WAIT_MS = 1000
const LOCK_MS = 500
const STATEMENT_MS = 1000

const limits = Object.fromEntries(
  ['READ', 'WRITE', 'GATEWAY', 'BACKGROUND'].flatMap((use) => [
    [`DATABASE_${use}_WAIT_MS`, String(WAIT_MS)],
    [`DATABASE_${use}_LOCK_MS`, String(LOCK_MS)],
    [`DATABASE_${use}_STATEMENT_MS`, String(STATEMENT_MS)],
  ]),
)

interface Seen {
  what: string
  status: number
  /** Start of the call by the monotonic clock, and its duration. */
  at: number
  ms: number
}

/** Customers who call the real service without a pause between calls. */
interface Crowd {
  seen: Seen[]
  /** Calls again and again until `stop`. */
  begin(
    what: string,
    callers: number,
    call: (token: string, userId: number) => Promise<Response>,
  ): Promise<void>
  stop(): Promise<void>
  baseUrl: string
}

async function crowdAt(baseUrl: string): Promise<Crowd> {
  const seen: Seen[] = []
  const running: Promise<void>[] = []
  const run = { isOver: false }
  let customers = 0
  onTestFinished(() => void (run.isOver = true))
  async function one(
    what: string,
    call: (token: string, userId: number) => Promise<Response>,
  ): Promise<void> {
    const who = { sub: `customer-${customers++}`, anonymous: true }
    const post = async (path: string, token?: string, body?: object) =>
      (await (
        await fetch(`${baseUrl}${path}`, {
          method: 'POST',
          headers: {
            'Content-Type': 'application/json',
            ...(token !== undefined && { Authorization: `Bearer ${token}` }),
          },
          ...(body && { body: JSON.stringify(body) }),
        })
      ).json()) as { access_token: string; user_id: number }
    const { access_token: token } = await post('/demo/identity/token', undefined, who)
    const { user_id: userId } = await post('/users/user/bootstrap/guest', token)
    running.push(
      (async () => {
        while (!run.isOver) {
          const at = clock.monotonic()
          const answer = await call(token, userId).catch((error: unknown) => {
            if (run.isOver) return undefined
            throw error
          })
          if (!answer) return
          await answer.arrayBuffer()
          if (answer.status === 503) {
            expect(answer.headers.get('Retry-After')).not.toBeNull()
          }
          seen.push({ what, status: answer.status, at, ms: clock.monotonic() - at })
          await sleep(clock, 200)
        }
      })(),
    )
  }
  return {
    seen,
    baseUrl,
    async begin(what, callers, call) {
      for (let number = 0; number < callers; number += 1) await one(what, call)
    },
    async stop() {
      run.isOver = true
      await Promise.all(running)
    },
  }
}

async function serviceOn(
  databaseUrl: string,
  direct: string,
): Promise<{ cloud: CloudProgram; crowd: Crowd }> {
  const db = openDatabase({ url: direct })
  await db.migrate()
  await openShop(db, { products: [{ price: 100, quantity: 1_000_000 }] })
  // The hub of this test is silent; its last message is recent.
  await db.kysely.updateTable('hub_sessions').set({ last_heard_at: clock.now() }).execute()
  await db.close()
  const cloud = startCloud({
    DATABASE_URL: databaseUrl,
    NODE_ENV: 'test',
    ONLINE_WITHIN_MS: '600000',
    // All customers of this test come from one address.
    GUESTS_PER_MINUTE: '1000',
    ...limits,
  })
  return { cloud, crowd: await crowdAt(`http://127.0.0.1:${await cloud.ready()}`) }
}

const authorized = (token: string, more: RequestInit = {}): RequestInit => ({
  ...more,
  headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
})
const countOf = (seen: readonly Seen[]): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { what, status } of seen) counts[`${what} ${status}`] = (counts[`${what} ${status}`] ?? 0) + 1
  return counts
}
const slowestOf = (seen: readonly Seen[]): number => Math.max(0, ...seen.map(({ ms }) => ms))
/** Number of calls since `since` that were answered. */
const served = (crowd: Crowd, since: number, what: string): number =>
  crowd.seen.slice(since).filter((each) => each.what === what && each.status === 200).length

service('postgres')(
  'calls to a silent database get 503 in bounded time, and are served again when it answers',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    onTestFinished(() => database.remove())
    const relay = await relayTo(database.url)
    onTestFinished(() => relay.close())
    const { cloud, crowd } = await serviceOn(relay.url, database.url)
    const { baseUrl } = crowd
    await crowd.begin('write', 10, (token) =>
      fetch(
        `${baseUrl}/users/user/profile`,
        authorized(token, { method: 'PATCH', body: '{"first_name":"A"}' }),
      ),
    )
    await crowd.begin('read', 10, (token) => fetch(`${baseUrl}/users/user`, authorized(token)))
    expect(await holdsWithin(clock, 20_000, () => Promise.resolve(served(crowd, 0, 'write') > 20))).toBe(true)

    relay.isSilent = true
    // A call in progress may still be served.
    await sleep(clock, 300)
    const since = crowd.seen.length
    await sleep(clock, 6000)
    const meanwhile = crowd.seen.slice(since)
    expect(new Set(meanwhile.map(({ status }) => status))).toEqual(new Set([503]))
    expect(new Set(meanwhile.map(({ what }) => what))).toEqual(new Set(['read', 'write']))
    expect(slowestOf(meanwhile)).toBeLessThan(WAIT_MS + STATEMENT_MS + SLACK_MS)
    // A load balancer sends no call here now, and no supervisor restarts the process.
    const ready = await fetch(`${baseUrl}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'not ready', failing: ['database'] }])
    expect((await fetch(`${baseUrl}/healthz`)).status).toBe(200)

    relay.isSilent = false
    const spoke = crowd.seen.length
    const isServed = () =>
      Promise.resolve(Math.min(served(crowd, spoke, 'read'), served(crowd, spoke, 'write')) > 20)
    expect(await holdsWithin(clock, 15_000, isServed)).toBe(true)
    expect((await fetch(`${baseUrl}/readyz`)).status).toBe(200)
    await crowd.stop()
    expect(new Set(crowd.seen.map(({ status }) => status))).toEqual(new Set([200, 503]))
    expect(cloud.child.exitCode).toBeNull()
    expect(cloud.output()).not.toContain('Unhandled')
  },
  120_000,
)

service('postgres')(
  'calls that need a locked table get 503 in bounded time, and all other calls are served',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    onTestFinished(() => database.remove())
    const { cloud, crowd } = await serviceOn(database.url, database.url)
    const { baseUrl } = crowd
    await crowd.begin('orders', 6, (token, userId) =>
      fetch(`${baseUrl}/users/${userId}/orders?hub_id=1`, authorized(token)),
    )
    await crowd.begin('cart', 10, (token, userId) =>
      fetch(`${baseUrl}/users/${userId}/orders?hub_id=1`, authorized(token, { method: 'POST' })),
    )
    await crowd.begin('other', 6, (token) => fetch(`${baseUrl}/users/user`, authorized(token)))
    const areServed = (since: number) => () =>
      Promise.resolve(['orders', 'cart', 'other'].every((what) => served(crowd, since, what) > 10))
    await holdsWithin(clock, 20_000, areServed(0))
    expect(countOf(crowd.seen)).toEqual({
      'orders 200': expect.any(Number) as number,
      'cart 200': expect.any(Number) as number,
      'other 200': expect.any(Number) as number,
    })

    const locker = new Client({ connectionString: database.url })
    locker.on('error', () => {})
    await locker.connect()
    await locker.query('begin')
    await locker.query('lock table orders in access exclusive mode')
    const lockedAt = clock.monotonic()
    await sleep(clock, 5000)
    const meanwhile = crowd.seen.filter(({ at }) => at >= lockedAt)
    const others = meanwhile.filter(({ what }) => what === 'other')
    expect(countOf(others)).toEqual({ 'other 200': others.length })
    expect(others.length).toBeGreaterThan(20)
    // Long before the lock ends, also on a busy machine.
    expect(slowestOf(others)).toBeLessThan(3 * WAIT_MS)
    const held = meanwhile.filter(({ what }) => what !== 'other')
    expect(Object.keys(countOf(held)).sort()).toEqual(['cart 503', 'orders 503'])
    expect(slowestOf(meanwhile)).toBeLessThan(WAIT_MS + STATEMENT_MS + SLACK_MS)

    await locker.query('rollback')
    await locker.end()
    expect(await holdsWithin(clock, 10_000, areServed(crowd.seen.length))).toBe(true)
    await crowd.stop()
    expect(new Set(crowd.seen.map(({ status }) => status))).toEqual(new Set([200, 503]))
    expect(cloud.child.exitCode).toBeNull()
  },
  120_000,
)
