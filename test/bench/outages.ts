import { join } from 'node:path'
import { Client } from 'pg'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { freePorts } from '../support/ports.ts'
import { startPostgres } from '../process/chaos/postgres.ts'
import { administrate } from '../support/postgres.ts'
import { relayTo } from '../support/relay.ts'
import { writePresence } from './carts.ts'
import { quantile, type Figure, type Section } from './figures.ts'
import { seedFleet } from './fleet.ts'
import { addressOf, serveCloud, type ServedCloud } from './served-cloud.ts'

export interface OutagesBench {
  runtime: Runtime
  folder: string
}

const CUSTOMERS = 16
/** A customer may read 60 times a minute. */
const PAUSE_MS = 1100
const CALM_MS = 10_000
const ENDINGS = 20
const AWAY_MS = 30_000
const LOCK_MS = 25_000
const SILENT_MS = 15_000
/** Time from the start of an outage to the stop signal of a process. */
const TOLD_AFTER_MS = 3000
/** Simultaneous calls at the stopping process. */
const BUSY = 8
const PATIENCE_MS = 60_000

const kinds = ['own', 'profile', 'orders', 'cart'] as const

interface Call {
  what: (typeof kinds)[number]
  status: number
  /** End by the monotonic clock. */
  endedAt: number
  ms: number
}

/** A database failure: resolves when it is over. */
interface Outage {
  name: string
  befall: () => Promise<void>
}

/**
 * A PostgreSQL fails in four ways while customers read, change their profile and create carts at the real
 * cloud program. Figures: the answers, the time until service returns, and the time that another process
 * needs to stop.
 */
export async function benchOutages({ runtime, folder }: OutagesBench): Promise<Section> {
  const [port] = (await freePorts(1)) as [number]
  const server = await startPostgres({ folder, port, runtime })
  const relay = await relayTo(server.url)
  let figures: Figure[]
  try {
    const [key] = await seedFleet(runtime, server.url, 1, 'a secret')
    const db = openDatabase({ url: server.url })
    await writePresence(db, 1, runtime.clock.now())
    await db.close()
    figures = await measure({ runtime, folder }, relay.url, key!, outagesOf(runtime, server, relay))
  } finally {
    relay.close()
    await server.remove()
  }
  return {
    title: `${CUSTOMERS} customers at a cloud whose PostgreSQL fails`,
    figures,
    notes: [
      `customers read their user and orders, change their profile and begin carts in turn, ${PAUSE_MS} ms after each answer; the cloud with its own settings, and the same process through all of it`,
      `the process that is told to stop is a second one, three seconds after the begin, with ${BUSY} calls under way`,
    ],
  }
}

async function measure(
  { runtime, folder }: OutagesBench,
  databaseUrl: string,
  key: string,
  outages: readonly Outage[],
): Promise<Figure[]> {
  const { clock } = runtime
  const figures: Figure[] = []
  const environment = { DATABASE_URL: databaseUrl }
  const start = (name: string): Promise<ServedCloud> =>
    serveCloud({ clock, folder: join(folder, name), database: '', environment })
  const cloud = await start('cloud')
  const calls: Call[] = []
  const run = { isOver: false }
  const customers = Array.from({ length: CUSTOMERS }, (_, n) => customer(runtime, cloud, n, run, calls))
  try {
    for (const { name, befall } of outages) {
      const figure = (what: string, value: number, unit: string, aim?: string): void =>
        void figures.push({ name: `${name}: ${what}`, values: [value], unit, ...(aim && { aim }) })
      const other = await start('other')
      await sleep(clock, CALM_MS)
      const from = clock.monotonic()
      const befalls = befall()
      await sleep(clock, TOLD_AFTER_MS)
      const url = `${other.baseUrl}/api/v1/owners/hub_inventory/?hub_id=1`
      // Some calls are answered, and some connections end.
      const busy = Promise.allSettled(
        Array.from({ length: BUSY }, () => fetch(url, { headers: { 'X-API-Key': key } })),
      )
      const toldAt = clock.monotonic()
      await other.stop()
      await busy
      figure('a process told to stop takes', (clock.monotonic() - toldAt) / 1000, 's', 'at most 10')
      await befalls
      const over = clock.monotonic()
      let servedAgain = Infinity
      while (servedAgain === Infinity && clock.monotonic() - over < PATIENCE_MS) {
        await sleep(clock, 50)
        servedAgain = allServedAt(calls, over)
      }
      const meanwhile = calls.filter(({ endedAt }) => endedAt > from && endedAt <= over)
      const count = (is: (status: number) => boolean): number =>
        meanwhile.filter(({ status }) => is(status)).length
      figure('answered as ever', count(isGood), 'calls')
      figure(
        'answered 503',
        count((status) => status === 503),
        'calls',
      )
      figure(
        'anything else',
        count((status) => !isGood(status) && status !== 503),
        'calls',
        'none',
      )
      figure(
        'a call, p99',
        quantile(
          meanwhile.map(({ ms }) => ms),
          0.99,
        ),
        'ms',
      )
      figure('every kind of call is served again after', (servedAgain - over) / 1000, 's')
    }
    run.isOver = true
    await Promise.all(customers)
    // Throws if the process has ended already.
    process.kill(cloud.pid, 0)
    return figures
  } finally {
    run.isOver = true
    await cloud.stop()
  }
}

const isGood = (status: number): boolean => status < 300

/** When the last kind of call was first served since `over`. */
function allServedAt(calls: readonly Call[], over: number): number {
  const since = calls.filter(({ status, endedAt }) => endedAt > over && isGood(status))
  return Math.max(...kinds.map((kind) => since.find(({ what }) => what === kind)?.endedAt ?? Infinity))
}

function outagesOf(
  { clock }: Runtime,
  server: Awaited<ReturnType<typeof startPostgres>>,
  relay: { isSilent: boolean },
): Outage[] {
  const others =
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  return [
    {
      name: `connections ended ${ENDINGS} times`,
      async befall() {
        for (let time = 0; time < ENDINGS; time += 1) {
          await administrate(server.url, others)
          await sleep(clock, 250)
        }
      },
    },
    {
      name: `away for ${AWAY_MS / 1000} s`,
      async befall() {
        await server.stop()
        await sleep(clock, AWAY_MS)
        await server.start()
      },
    },
    {
      name: `orders locked for ${LOCK_MS / 1000} s`,
      async befall() {
        const locker = new Client({ connectionString: server.url })
        await locker.connect()
        await locker.query('begin')
        await locker.query('lock table orders in access exclusive mode')
        await sleep(clock, LOCK_MS)
        await locker.end()
      },
    },
    {
      name: `silent for ${SILENT_MS / 1000} s`,
      async befall() {
        relay.isSilent = true
        await sleep(clock, SILENT_MS)
        relay.isSilent = false
      },
    },
  ]
}

async function customer(
  { clock }: Runtime,
  { baseUrl }: ServedCloud,
  n: number,
  run: { isOver: boolean },
  calls: Call[],
): Promise<void> {
  const address = { 'X-Forwarded-For': addressOf(n + 1) }
  const json = { 'Content-Type': 'application/json', ...address }
  const issued = await fetch(`${baseUrl}/demo/identity/token`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ sub: `outage-${n}`, anonymous: true }),
  })
  const { access_token: token } = (await issued.json()) as { access_token: string }
  const headers = { ...json, Authorization: `Bearer ${token}` }
  const entered = await fetch(`${baseUrl}/users/user/bootstrap/guest`, { method: 'POST', headers })
  const { user_id: userId } = (await entered.json()) as { user_id: number }
  const body = JSON.stringify({ first_name: 'Ada' })
  const questions = [
    { what: 'own', path: '/users/user', init: {} },
    { what: 'profile', path: '/users/user/profile', init: { method: 'PATCH', body } },
    { what: 'orders', path: `/users/${userId}/orders?hub_id=1`, init: {} },
    { what: 'cart', path: `/users/${userId}/orders?hub_id=1`, init: { method: 'POST' } },
  ] as const
  for (let turn = n; !run.isOver; turn += 1) {
    const { what, path, init } = questions[turn % questions.length]!
    const began = clock.monotonic()
    const answer = await fetch(baseUrl + path, { ...init, headers })
    await answer.arrayBuffer()
    const endedAt = clock.monotonic()
    calls.push({ what, status: answer.status, endedAt, ms: endedAt - began })
    await sleep(clock, PAUSE_MS)
  }
}
