import { join } from 'node:path'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { seedDemo } from '../../cloud/demo/seed-database.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { scopes } from '../../protocol/model/scopes.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { writePresence } from './carts.ts'
import { quantile, type Figure, type Section } from './figures.ts'
import { processorMs } from './process-figures.ts'
import { progress } from './progress.ts'
import { addressOf, serveCloud, type ServedCloud } from './served-cloud.ts'
import { worstCalls, type KnownIds, type WorstCall } from './worst-calls.ts'

export interface CostsBench {
  runtime: Runtime
  folder: string
  /** Number of measurements of each call. */
  rounds: number
  /** Only routes with this text in method and path. */
  route: string
}

/** The maximum of processor time for a request. */
const MOST_MS = 100
/** Callers change before the rate limit of a minute is reached. */
const CALLS_PER_KEY = 80
const CALLS_PER_CUSTOMER = 8
const DEALS = 100
const LINES = 60

/**
 * Measures the maximum processor time of one request, route by route: the real cloud with the demo's data,
 * 100 deals and a cart of 60 lines, and requests designed to need much work.
 */
export async function benchCosts({ runtime, folder, rounds, route }: CostsBench): Promise<Section> {
  const database = join(folder, 'costs.sqlite')
  const keys = await seed(database, runtime)
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder,
    database,
    // No hub is online: waiting for commands would be useless.
    environment: { DOCS_API_KEY: keys[0]!, COMMAND_TIMEOUT_MS: '50' },
  })
  try {
    const asked = new Asked(cloud, keys)
    const ids = await prepare(asked)
    const calls = worstCalls(ids).filter((call) => call.route.includes(route))
    const worst = new Map<string, { call: WorstCall; values: number[] }>()
    for (const [index, call] of calls.entries()) {
      progress.show(`${index + 1} of ${calls.length}: ${call.route}, ${call.how}`)
      // The first calls are compiled during their run.
      await asked.cost(call)
      const values: number[] = []
      for (let round = 0; round < Math.min(rounds, 3); round += 1) values.push(await asked.cost(call))
      const before = worst.get(call.route)
      if (!before || quantile(values, 0.5) > quantile(before.values, 0.5))
        worst.set(call.route, { call, values })
    }
    const found = [...worst.values()].sort((a, b) => quantile(b.values, 0.5) - quantile(a.values, 0.5))
    const figures = found.map(({ call, values }): Figure => ({
      name: `${call.route}: ${call.how}`,
      values,
      unit: 'ms',
      aim: `at most ${MOST_MS}`,
    }))
    const above = found.filter(({ values }) => quantile(values, 0.5) > MOST_MS)
    if (above.length > 0) process.exitCode = 1
    return {
      title: 'What one request costs of the processor, all threads together, worst first',
      figures,
      notes: [
        `${calls.length} requests of ${found.length} routes; each route by its worst one`,
        `${above.length} routes are above ${MOST_MS} ms`,
      ],
    }
  } finally {
    await cloud.stop()
  }
}

/** Creates the demo's data, with keys of its owner. */
async function seed(database: string, runtime: Runtime): Promise<string[]> {
  const db = openDatabase({ url: `sqlite:${database}` }).for('background')
  try {
    await db.migrate()
    await seedDemo(db, runtime)
    for (const table of ['hub_sessions', 'hub_bins', 'hub_outboxes'] as const)
      await db.kysely.deleteFrom(table).where('hub_id', '=', 1).execute()
    await writePresence(db, 1, runtime.clock.now())
    const keys: string[] = []
    for (let n = 0; n < 60; n += 1) {
      const request = {
        name: `costs ${n}`,
        ownerId: 1,
        scopes: [...scopes],
        hubs: '*',
        expiresAt: null,
      } as const
      keys.push((await issueApiKey(db.kysely, runtime, { ...request, scopes })).key)
    }
    return keys
  } finally {
    await db.close()
  }
}

/** The cloud, called by callers who change before their rate limit is reached. */
class Asked {
  readonly #cloud: ServedCloud
  readonly #keys: readonly string[]
  readonly #used = new Map<string, number>()
  /** Tokens of customers, in the order of their sign-in. The first customer has the cart. */
  readonly #tokens: string[] = []
  #addresses = 0

  constructor(cloud: ServedCloud, keys: readonly string[]) {
    this.#cloud = cloud
    this.#keys = keys
  }

  /** Signs in another customer. */
  async signIn(): Promise<{ user_id: number }> {
    const sub = `costs-${this.#tokens.length}`
    const answer = await this.json(
      'POST',
      '/demo/identity/token',
      { sub, email: `${sub}@example.org` },
      'none',
    )
    this.#tokens.push((answer as { access_token: string }).access_token)
    const token = this.#tokens.at(-1)!
    const body = { type: 'application/json', bytes: () => new TextEncoder().encode('{}') }
    const user = await this.#send('POST', '/users/user/bootstrap', { Authorization: `Bearer ${token}` }, body)
    return JSON.parse(user) as { user_id: number }
  }

  /** Low rate limits are per customer: customers take turns on paths without a user. */
  async #tokenOf(path: string, used: number): Promise<string> {
    const turn =
      path.includes('/users/user/') || !/\/users\/\d/.test(path) ? Math.floor(used / CALLS_PER_CUSTOMER) : 0
    while (this.#tokens.length <= turn) await this.signIn()
    return this.#tokens[turn]!
  }

  async json(
    method: string,
    path: string,
    body: object | undefined,
    auth: WorstCall['auth'],
  ): Promise<unknown> {
    const sent = body && {
      type: 'application/json',
      bytes: () => new TextEncoder().encode(JSON.stringify(body)),
    }
    return JSON.parse(
      await this.#send(method, path, await this.#credential(path, path, auth), sent),
    ) as unknown
  }

  /** Processor time of one call, in milliseconds. */
  async cost({ route, path, method, auth, body }: WorstCall): Promise<number> {
    const credential = await this.#credential(route, path, auth)
    const before = processorMs(this.#cloud.pid)
    await this.#send(method, path, credential, body)
    return processorMs(this.#cloud.pid) - before
  }

  async #credential(route: string, path: string, auth: WorstCall['auth']): Promise<Record<string, string>> {
    const used = this.#used.get(route) ?? 0
    this.#used.set(route, used + 1)
    if (auth === 'none') return {}
    if (auth !== 'api' && auth !== 'diag')
      return { Authorization: `Bearer ${await this.#tokenOf(path, used)}` }
    return { 'X-API-Key': this.#keys[Math.floor(used / CALLS_PER_KEY) % this.#keys.length]! }
  }

  async #send(
    method: string,
    path: string,
    credential: Record<string, string>,
    body: WorstCall['body'],
  ): Promise<string> {
    const answer = await fetch(`${this.#cloud.baseUrl}${path}`, {
      method,
      headers: {
        'X-Forwarded-For': addressOf((this.#addresses += 1)),
        ...credential,
        ...(body && { 'Content-Type': body.type }),
      },
      ...(body && { body: body.bytes() as Uint8Array<ArrayBuffer> }),
    }).catch(() => undefined)
    if (answer?.status === 429) throw new Error(`${method} ${path} is limited: nothing is measured`)
    return (await answer?.text().catch(() => '')) ?? ''
  }
}

/** A customer with a full cart, and deals; returns the ids of both. */
async function prepare(asked: Asked): Promise<KnownIds> {
  const user = await asked.signIn()
  const orders = `/users/${user.user_id}/orders`
  const cart = (await asked.json('POST', `${orders}?hub_id=1`, undefined, 'user')) as { order_id: number }
  for (let product = 1; product <= LINES; product += 1)
    await asked.json(
      'PUT',
      `${orders}/${cart.order_id}/order_item?hub_id=1`,
      { product_id: product, quantity: 1 },
      'user',
    )
  for (let n = 0; n < DEALS; n += 1) await asked.json('POST', '/api/v1/deals', dealOf(n), 'api')
  return { user_id: String(user.user_id), order_id: String(cart.order_id), hub_id: '1', hub: '1', bin: '1' }
}

const dealOf = (n: number) => ({
  name: `Deal ${n}`,
  hub_id: 1,
  priority: n % 7,
  triggers: [{ type: 'QUANTITY', quantity: 1 + (n % 3), product_id: 1 + (n % 60) }],
  rewards: [{ type: 'PERCENT_OFF', discount_pct_or_price: 10 + (n % 50), product_id: 1 + ((n + 1) % 60) }],
  constraints: n % 2 === 0 ? [{ type: 'STACKABLE', value: '1' }] : [],
})
