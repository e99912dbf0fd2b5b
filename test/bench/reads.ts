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
import { serveCloud } from './served-cloud.ts'

export interface ReadsBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Requests of each kind in a round, to either side. */
  requests: number
}

const ORDERS = 200_000
const PRODUCTS = 50
const WARM_UP = 3000
const CONNECTIONS = 4

interface Question {
  name: string
  route: RouteId
  larder: string
  bare: string
  aim: string
}

const orders = '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1&limit=20'
const questions: readonly Question[] = [
  {
    name: `hub_inventory/ of ${PRODUCTS} products`,
    route: 'owner.inventory.list',
    larder: '/api/v1/owners/hub_inventory/?hub_id=1',
    bare: '/inventory?hub_id=1',
    aim: 'at least 1.0',
  },
  {
    name: 'the first order page, 20 × 3',
    route: 'owner.orders.list',
    larder: orders,
    bare: '/orders?hub_id=1',
    aim: 'at least 0.9',
  },
  {
    name: 'a deep order page',
    route: 'owner.orders.list',
    larder: `${orders}&cursor=150`,
    bare: '/orders?hub_id=1&cursor=150',
    aim: 'at least 0.9',
  },
]

/**
 * Two answers of the owner's interface, over real HTTP: the real cloud program with key, scope, limit and validation, and a
 * bare one with a prepared statement, each in a process of its own over the same file.
 */
export async function benchReads({ runtime, folder, rounds, requests }: ReadsBench): Promise<Section> {
  const file = join(folder, 'reads.sqlite')
  const db = await writeBooks({
    file,
    orders: ORDERS,
    products: PRODUCTS,
    lines: 3,
    now: runtime.clock.now(),
  })
  await leaveUnsummed(db)
  const total = WARM_UP + rounds * requests + 2
  const fewest = Math.min(...questions.map(({ route }) => rateClasses[routes[route].rate].requests))
  const keys: string[] = []
  // Each may ask so often a minute; both order pages count as one.
  for (let n = 0; n < Math.ceil((2 * total) / fewest) + 1; n += 1) {
    const request = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    keys.push(
      (await issueApiKey(db.kysely, runtime, { ...request, scopes: ['inventory:read', 'orders:read'] })).key,
    )
  }
  await db.close()
  const cloud = await serveCloud({ clock: runtime.clock, folder: join(folder, 'cloud'), database: file })
  const bare = launch('bare-reads', [file, cloud.baseUrl])
  try {
    const { port } = (await answer(bare)) as { port: number }
    let used = 0
    const figures: Figure[] = []
    const perSecond: number[][] = []
    for (const question of questions) {
      const line = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`
      const ours: Contestant = {
        name: 'Larder',
        port: cloud.port,
        pid: cloud.pid,
        requests: (count) =>
          Array.from({ length: count }, () =>
            line(question.larder, `X-API-Key: ${keys[used++ % keys.length]!}\r\n`),
          ),
      }
      const theirs: Contestant = {
        name: 'bare',
        port,
        pid: bare.pid!,
        requests: (count) => Array.from({ length: count }, () => line(question.bare)),
      }
      assert.deepEqual(
        await read(`http://127.0.0.1:${cloud.port}${question.larder}`, {
          'X-API-Key': keys[used++ % keys.length]!,
        }),
        await read(`http://127.0.0.1:${port}${question.bare}`),
      )
      const [larder, bareOnes] = await inTurns([ours, theirs], {
        rounds,
        requests,
        warmUp: WARM_UP,
        connections: CONNECTIONS,
      })
      perSecond.push(larder!.perSecond)
      figures.push(...besideBare(question.name, larder!, bareOnes!, question.aim))
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
        'HTTP over loopback from a process of its own, answers compared before; bare: no key, scope, limit or check',
      ],
    }
  } finally {
    await cloud.stop()
    await dismiss(bare)
  }
}

async function read(url: string, headers: Record<string, string> = {}): Promise<unknown> {
  const response = await fetch(url, { headers })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`)
  return response.json()
}
