import assert from 'node:assert/strict'
import { join } from 'node:path'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { rateClasses } from '../../protocol/contract/route.ts'
import { routes, type RouteId } from '../../protocol/contract/routes.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { leaveUnsummed, writeBooks } from './books.ts'
import { answer, dismiss, launch } from './children.ts'
import { ratios, type Figure, type Section } from './figures.ts'
import { besideBare, inTurns, type Contestant } from './paired.ts'
import { serveCloud, tokensOf } from './served-cloud.ts'
import type { CloudDatabase } from '../../cloud/platform/store/database.ts'

export interface ReadsBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Requests of each kind in a round, to each side. */
  requests: number
}

const ORDERS = 200_000
const PRODUCTS = 50
const WARM_UP = 3000
const CONNECTIONS = 4
const SLICES = 5
const limited: readonly RouteId[] = ['owner.inventory.list', 'owner.orders.list', 'consumer.orders.get']

interface Question {
  name: string
  /** Complete requests in turns, so many that no caller reaches its rate limit. */
  larder: readonly string[]
  bare: readonly string[]
  aim: string
}

interface OwnOrder {
  user: number
  order: number
}

const orders = '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1&limit=20'
const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`

function questionsOf(
  keys: readonly string[],
  customers: readonly (OwnOrder & { token: string })[],
): Question[] {
  const byKeys = (path: string): string[] => keys.map((key) => get(path, `X-API-Key: ${key}\r\n`))
  return [
    {
      name: `hub_inventory/ of ${PRODUCTS} products`,
      larder: byKeys('/api/v1/owners/hub_inventory/?hub_id=1'),
      bare: [get('/inventory?hub_id=1')],
      aim: 'at least 1.0',
    },
    {
      name: 'the first order page, 20 × 3',
      larder: byKeys(orders),
      bare: [get('/orders?hub_id=1')],
      aim: 'at least 0.95',
    },
    {
      name: 'a deep order page',
      larder: byKeys(`${orders}&cursor=150`),
      bare: [get('/orders?hub_id=1&cursor=150')],
      aim: 'at least 0.95',
    },
    {
      name: 'an order of one’s own',
      larder: customers.map(({ user, order, token }) =>
        get(`/users/${user}/orders/${order}?hub_id=1`, `Authorization: Bearer ${token}\r\n`),
      ),
      bare: customers.map(({ user, order }) => get(`/order?id=${order}&user_id=${user}&hub_id=1`)),
      aim: 'at least 0.6',
    },
  ]
}

/** Customers `bench-1`, `bench-2` … with one order each. */
async function writeCustomers(db: CloudDatabase, count: number): Promise<OwnOrder[]> {
  const q = db.kysely
  const owned: OwnOrder[] = []
  for (let user = 1; user <= count; user += 1) {
    await q
      .updateTable('users')
      .set({ identity: `bench-${user}` })
      .where('id', '=', user)
      .execute()
    const { id } = await q
      .selectFrom('orders')
      .select('id')
      .where('user_id', '=', user)
      .orderBy('id')
      .limit(1)
      .executeTakeFirstOrThrow()
    owned.push({ user, order: id })
  }
  return owned
}

/**
 * Measures answers of the owner's interface and one of the customer's, over real HTTP. The real cloud program
 * has credential, scope, limit and validation; the bare one has a prepared statement. Each is a separate
 * process on the same file.
 */
export async function benchReads({ runtime, folder, rounds, requests }: ReadsBench): Promise<Section> {
  const file = join(folder, 'reads.sqlite')
  const db = await writeBooks({
    url: `sqlite:${file}`,
    orders: ORDERS,
    products: PRODUCTS,
    lines: 3,
    now: runtime.clock.now(),
  })
  await leaveUnsummed(db)
  const total = WARM_UP + rounds * (requests + SLICES) + 2
  // Each key has a rate limit per minute; both order pages share one.
  const fewest = Math.min(...limited.map((route) => rateClasses[routes[route].rate].requests))
  const callers = Math.ceil((2 * total) / fewest) + 1
  const keys: string[] = []
  for (let n = 0; n < callers; n += 1) {
    const request = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    keys.push(
      (await issueApiKey(db.kysely, runtime, { ...request, scopes: ['inventory:read', 'orders:read'] })).key,
    )
  }
  const owned = await writeCustomers(db, callers)
  await db.close()
  const cloud = await serveCloud({ clock: runtime.clock, folder: join(folder, 'cloud'), database: file })
  const bare = launch('bare-reads', [file, cloud.baseUrl])
  try {
    const { port } = (await answer(bare)) as { port: number }
    const tokens = await tokensOf(cloud, callers)
    const questions = questionsOf(
      keys,
      owned.map((own, index) => ({ ...own, token: tokens[index]! })),
    )
    const figures: Figure[] = []
    const perSecond: number[][] = []
    for (const { name, larder, bare: theirs, aim } of questions) {
      const ours = { name: 'Larder', port: cloud.port, pid: cloud.pid, requests: inOrder(larder) }
      const others = { name: 'bare', port, pid: bare.pid!, requests: inOrder(theirs) }
      assert.deepEqual(await read(ours), await read(others))
      const [measured, beside] = await inTurns([ours, others], {
        rounds,
        requests,
        warmUp: WARM_UP,
        connections: CONNECTIONS,
        slices: SLICES,
      })
      perSecond.push(measured!.perSecond)
      figures.push(...besideBare(name, measured!, beside!, aim))
    }
    figures.push({
      name: 'a deep page to the first',
      values: ratios(perSecond[2]!, perSecond[1]!),
      unit: 'times',
      aim: 'as fast',
    })
    return {
      title: `reading, beside bare Hono with a prepared statement (SQLite, ${ORDERS.toLocaleString('en')} orders, ${rounds} rounds of ${requests})`,
      figures,
      notes: [
        'HTTP over loopback from a process of its own, answers compared before; bare: no credential, scope, limit or check; it signs each picture once an answer',
      ],
    }
  } finally {
    await cloud.stop()
    await dismiss(bare)
  }
}

/** The next `count` texts, continued from the last call. */
function inOrder(texts: readonly string[]): (count: number) => string[] {
  let used = 0
  return (count) => Array.from({ length: count }, () => texts[used++ % texts.length]!)
}

/** The first answer of a contestant, as JSON. */
async function read({ port, requests }: Pick<Contestant, 'port' | 'requests'>): Promise<unknown> {
  const [first, , ...lines] = requests(1)[0]!.trimEnd().split('\r\n')
  const path = first!.split(' ')[1]!
  const headers = lines.map((line) => line.split(': ') as [string, string])
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
  return response.json()
}
