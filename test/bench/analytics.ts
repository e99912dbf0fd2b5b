import { join } from 'node:path'
import { analyticsHandlers } from '../../cloud/commerce/analytics/reports.ts'
import { rebuildSales } from '../../cloud/commerce/analytics/rebuild.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { credentialResolver } from '../../cloud/platform/credentials/resolve.ts'
import { createApp, type App } from '../../cloud/platform/http/app.ts'
import type { Handlers } from '../../cloud/platform/http/handler.ts'
import { Health } from '../../cloud/platform/http/health.ts'
import { memoryRateLimiter } from '../../cloud/platform/http/rate-limit.ts'
import { folderStore } from '../../cloud/platform/media/folder-store.ts'
import { createMedia } from '../../cloud/platform/media/media.ts'
import { mediaSigner } from '../../cloud/platform/media/addresses.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'
import { ownerAnalyticsRoutes } from '../../protocol/contract/owner-analytics.ts'
import { routes, type ServiceRouteId } from '../../protocol/contract/routes.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { writeBooks } from './books.ts'
import { quantile, ratios, type Figure, type Section } from './figures.ts'
import { testContext } from '../cloud/support/context.ts'

const MINUTE = 60_000
const CALLS = 20

export interface AnalyticsBench {
  runtime: Runtime
  folder: string
  /** Orders of the smaller and of the larger hub. */
  few: number
  many: number
  rounds: number
}

/** One service over one database, called with key, scope, limit and validation; every answer is JSON. */
interface Bench {
  call(path: string): Promise<number>
  close(): Promise<void>
  buildMs: number
}

/** Calls every analytics route in turns, for a hub with few orders and a hub with many. */
export async function benchAnalytics(options: AnalyticsBench): Promise<Section> {
  const { runtime, folder, few, many, rounds } = options
  const small = await openBench(runtime, join(folder, 'few.sqlite'), few)
  const large = await openBench(runtime, join(folder, 'many.sqlite'), many)
  const figures: Figure[] = []
  try {
    for (const path of paths()) {
      const times: [few: number[], many: number[]] = [[], []]
      for (let round = -1; round < rounds; round += 1) {
        const [a, b] = await mediansOf([small, large], path)
        // The first round is a warm-up.
        if (round >= 0) times[0].push(a)
        if (round >= 0) times[1].push(b)
      }
      figures.push({
        name: path.replace(/\?.*?(timeframe=.*)?$/, ' $1').trim(),
        values: ratios(times[1], times[0]),
        unit: 'times',
        aim: `at most 1.5; ${micros(times[0])} µs, ${micros(times[1])} µs`,
      })
    }
  } finally {
    await small.close()
    await large.close()
  }
  const [a, b] = [few.toLocaleString('en'), many.toLocaleString('en')]
  return {
    title: `analytics, each call at ${b} orders of a hub against ${a} (SQLite, ${rounds} rounds)`,
    figures,
    notes: [
      'in-process calls with key, scope, limit and validation; beside the aim the middle times of either',
      `summing up ${b} orders anew took ${(large.buildMs / 1000).toFixed(0)} s`,
    ],
  }
}

const micros = (values: readonly number[]): number => Math.round(quantile(values, 0.5) * 1000)

/** Each route once; the route with two forms twice. */
function paths(): string[] {
  return Object.entries(ownerAnalyticsRoutes).flatMap(([id, { path }]) => {
    const short = path.slice('/owners/'.length).replace('{hub_id}', '1')
    switch (id) {
      case 'owner.analytics.gross_revenue':
        return [`${short}?hub_id=1`, `${short}?hub_id=1&timeframe=monthly`]
      case 'owner.analytics.product_months':
        return [`${short}?hub_id=1&product_upc=000000000007`]
      default:
        return [`${short}?hub_id=1`]
    }
  })
}

/** The medians of both, called in turns, so that other load of the machine affects both alike. */
async function mediansOf(benches: readonly [Bench, Bench], path: string): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let index = 0; index < CALLS; index += 1) {
    times[0].push(await benches[0].call(path))
    times[1].push(await benches[1].call(path))
  }
  return [quantile(times[0], 0.5), quantile(times[1], 0.5)]
}

async function openBench(runtime: Runtime, file: string, orders: number): Promise<Bench> {
  const { clock } = runtime
  const db = await writeBooks({ file, orders, now: clock.now() })
  const begun = clock.monotonic()
  await rebuildSales(db, 1)
  const buildMs = clock.monotonic() - begun
  const request = { name: 'bench', ownerId: 1, hubs: '*', expiresAt: null } as const
  const { key } = await issueApiKey(db.kysely, runtime, { ...request, scopes: ['analytics:read'] })
  const app = appOver(db, runtime, `${file}.media`)
  return {
    buildMs,
    async call(path) {
      const from = clock.monotonic()
      const answer = await app.request(`/api/v1/owners/${path}`, { headers: { 'X-API-Key': key } })
      await answer.text()
      const spent = clock.monotonic() - from
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}`)
      return spent
    },
    close: () => db.close(),
  }
}

/** The limit counts calls, but each call starts a new minute: no real caller may call this often. */
function appOver(db: CloudDatabase, runtime: Runtime, mediaFolder: string): App {
  const context = testContext(db, runtime)
  const { clock } = runtime
  const lifetimeMs = defaultLimits.rules.fileAddressMs
  const signer = mediaSigner({ baseUrl: 'http://127.0.0.1', secret: 'bench', lifetimeMs, kept: 1000, clock })
  let minutes = 0
  const hurried = { ...clock, now: () => (minutes += 1) * MINUTE }
  const absent = Object.fromEntries(
    Object.keys(routes).map((id) => [id, () => Promise.reject(new Error(`${id} is not measured`))]),
  ) as unknown as Handlers<ServiceRouteId>
  const media = createMedia({ context, store: folderStore(mediaFolder), signer })
  return createApp({
    context,
    resolveCredential: credentialResolver(context, () => Promise.reject(new Error('no tokens here'))),
    limiter: memoryRateLimiter(hurried),
    media,
    checkResponses: false,
    isSecure: false,
    health: new Health(hurried, {}),
    corsOrigins: [],
    addressOf: () => '192.0.2.1',
    handlers: { ...absent, ...analyticsHandlers(context, media) },
  })
}
