import { request } from 'node:http'
import { join } from 'node:path'
import { rebuildSales } from '../../cloud/commerce/analytics/rebuild.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import { createPostgresDatabase } from '../process/chaos/postgres.ts'
import { writeBooks } from './books.ts'
import { ratios, type Figure, type Section } from './figures.ts'
import { inTurns, type Contestant } from './paired.ts'
import { residentMb } from './process-figures.ts'
import { progress } from './progress.ts'
import { serveCloud, tokensOf, type ServedCloud } from './served-cloud.ts'

export interface OwnerReportsBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Requests for each report in a round. */
  requests: number
  /** Past orders of the hubs, ascending. */
  sizes: readonly number[]
}

/** Each key may read a report 90 times a minute. */
const KEYS = 200
const WARM_UP = 5
const DAY_MS = 86_400_000
/** Rows of the measured page of an export. */
const EXPORTED = 500
/** Orders of the export; its memory is measured. */
const MEASURED_ROWS = 200_000
const SAMPLE_MS = 50

interface Hub {
  orders: number
  cloud: ServedCloud
  keys: readonly string[]
  token: string
  close(): Promise<void>
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)

/** Address, and whether it returns CSV, of each report for a hub with this number of orders. */
function reportsOf(now: number, orders: number): Record<string, { path: string; isCsv?: true }> {
  const owners = '/api/v1/owners'
  const year = `from=${dayOf(now - 364 * DAY_MS)}&to=${dayOf(now)}`
  const monthAgo = `from=${dayOf(now - 500 * DAY_MS)}&to=${dayOf(now - 470 * DAY_MS)}`
  const newest = `from=${new Date(now - (EXPORTED * 730 * DAY_MS) / orders).toISOString()}`
  const list = `${owners}/hubs/all_orders_paginated/?hub_id=1&limit=100`
  return {
    ...Object.fromEntries(
      ['day', 'week', 'month', 'product', 'category', 'hour', 'hub'].map((by) => [
        `sales of a year by ${by}`,
        { path: `${owners}/sales?group_by=${by}&${year}` },
      ]),
    ),
    'rows to refill': { path: `${owners}/restock?limit=100` },
    fleet: { path: `${owners}/fleet?limit=100` },
    'orders, newest': { path: list },
    'orders of a month, by status': { path: `${list}&${monthAgo}&status=COMPLETED` },
    'orders with a status that none has': { path: `${list}&status=FAILED` },
    [`${EXPORTED} orders as CSV`]: { path: `${list}&${newest}`, isCsv: true },
    'payments, newest': { path: `${owners}/payments?limit=100` },
    'payments of a month': { path: `${owners}/payments?limit=100&${monthAgo}` },
    'payments of an order': { path: `${owners}/payments?order_id=5000` },
    [`${EXPORTED} payments as CSV`]: { path: `${owners}/payments?${newest}`, isCsv: true },
    'audit, newest': { path: `${owners}/audit?limit=100` },
    'audit of a month': { path: `${owners}/audit?limit=100&${monthAgo}` },
    'audit of a hub and a month': { path: `${owners}/audit?limit=100&hub_id=1&${monthAgo}` },
    'audit by a rare action': { path: `${owners}/audit?limit=100&action=keys.create` },
    'audit by the beginning of a rare action': { path: `${owners}/audit?limit=100&action=keys.` },
    'audit by a rare actor': { path: `${owners}/audit?limit=100&actor=key:rarerare` },
    'audit of an order': { path: `${owners}/audit?limit=100&object=order-5000` },
    'receipt of an order': { path: `/users/1/orders/10/receipt` },
  }
}

/** Measures the reports of an owner whose hub has few, more and many past orders, on both databases. */
export async function benchOwnerReports(options: OwnerReportsBench): Promise<Section> {
  const { runtime, sizes } = options
  const server = process.env['TEST_POSTGRES_URL']
  const kinds = server === undefined ? (['SQLite'] as const) : (['SQLite', 'PostgreSQL'] as const)
  const figures: Figure[] = []
  for (const kind of kinds) {
    const hubs: Hub[] = []
    try {
      for (const orders of sizes) {
        progress.show(`${kind}: ${orders.toLocaleString('en')} orders`)
        hubs.push(await openHub(options, kind, orders, server))
      }
      const now = runtime.clock.now()
      for (const name of Object.keys(reportsOf(now, sizes[0]!)))
        figures.push(...(await measure(kind, name, hubs, now, options)))
      const exported = hubs.find(({ orders }) => orders >= MEASURED_ROWS)
      if (exported) figures.push(...(await memoryOfExport(runtime.clock, kind, exported)))
    } finally {
      for (const hub of hubs) await hub.close()
    }
  }
  return {
    title: `an owner's reports over ${sizes.map((size) => size.toLocaleString('en')).join(', ')} orders (${options.rounds} rounds of ${options.requests})`,
    figures,
    notes: [
      'HTTP over loopback from a process of its own, one at a time; the whole request',
      ...(server === undefined ? ['without TEST_POSTGRES_URL nothing was measured on PostgreSQL'] : []),
    ],
  }
}

async function measure(
  kind: string,
  name: string,
  hubs: readonly Hub[],
  now: number,
  { rounds, requests }: OwnerReportsBench,
): Promise<Figure[]> {
  const measured = await inTurns(
    hubs.map((hub) => asking(hub, name, now)),
    { rounds, requests, warmUp: WARM_UP, connections: 1 },
  )
  const line = `${kind}, ${name}`
  return [
    ...measured.map(({ p50 }, index) => ({
      name: `${line}, ${hubs[index]!.orders.toLocaleString('en')} orders: p50`,
      values: p50,
      unit: 'ms',
      growth: { of: 'orders', at: hubs[index]!.orders, line },
    })),
    {
      name: `${line}: most orders to fewest`,
      values: ratios(measured.at(-1)!.p50, measured[0]!.p50),
      unit: 'times',
      aim: 'at most 2',
    },
  ]
}

async function openHub(
  { runtime, folder }: OwnerReportsBench,
  kind: 'SQLite' | 'PostgreSQL',
  orders: number,
  server: string | undefined,
): Promise<Hub> {
  const own = kind === 'PostgreSQL' ? await createPostgresDatabase(server!, runtime) : undefined
  const url = own?.url ?? `sqlite:${join(folder, `${orders}.sqlite`)}`
  const db = await writeBooks({ url, orders, now: runtime.clock.now() })
  await db.transact((tx) => rebuildSales(tx, 1))
  await db.kysely.updateTable('users').set({ identity: 'bench-1' }).where('id', '=', 1).execute()
  await db.kysely.updateTable('orders').set({ user_id: 1 }).where('id', '=', 10).execute()
  const keys: string[] = []
  for (let n = 0; n < KEYS; n += 1) {
    const about = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    const owned = scopes.filter((scope) => !scope.startsWith('diag:'))
    keys.push((await issueApiKey(db.kysely, runtime, { ...about, scopes: owned })).key)
  }
  await db.close()
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, `${kind}-${orders}`),
    database: '',
    environment: { DATABASE_URL: url },
  })
  const [token] = await tokensOf(cloud, 1)
  return {
    orders,
    cloud,
    keys,
    token: token!,
    async close() {
      await cloud.stop()
      await own?.remove()
    },
  }
}

let used = 0

function asking({ orders, cloud, keys, token }: Hub, name: string, now: number): Contestant {
  const { path, isCsv } = reportsOf(now, orders)[name]!
  const accept = isCsv ? 'Accept: text/csv\r\n' : ''
  const credential = () =>
    path.startsWith('/users/') ? `Authorization: Bearer ${token}` : `X-API-Key: ${keys[used++ % KEYS]!}`
  return {
    name,
    port: cloud.port,
    pid: cloud.pid,
    requests: (count) =>
      Array.from(
        { length: count },
        () => `GET ${path} HTTP/1.1\r\nHost: bench\r\n${accept}${credential()}\r\n\r\n`,
      ),
  }
}

/** Measures the resident memory of the cloud while all orders are read as CSV. */
async function memoryOfExport(clock: Clock, kind: string, { orders, cloud, keys }: Hub): Promise<Figure[]> {
  const before = residentMb(cloud.pid)
  let most = before
  let bytes = 0
  const begun = clock.monotonic()
  const sampling = setInterval(() => (most = Math.max(most, residentMb(cloud.pid))), SAMPLE_MS)
  try {
    await new Promise<void>((resolve, reject) => {
      const call = request(
        {
          port: cloud.port,
          path: '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1',
          headers: { Accept: 'text/csv', 'X-API-Key': keys[0]! },
        },
        (answer) => {
          answer.on('data', (chunk: Buffer) => (bytes += chunk.length))
          answer.once('end', resolve)
          answer.once('error', reject)
        },
      )
      call.once('error', reject)
      call.end()
    })
  } finally {
    clearInterval(sampling)
  }
  const of = `${kind}, ${orders.toLocaleString('en')} orders as CSV`
  return [
    { name: `${of}: resident memory before`, values: [before], unit: 'MB' },
    { name: `${of}: most resident memory`, values: [most], unit: 'MB' },
    { name: `${of}: size`, values: [bytes / 1e6], unit: 'MB' },
    { name: `${of}: time`, values: [(clock.monotonic() - begun) / 1000], unit: 's' },
  ]
}
