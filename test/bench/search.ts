import { join } from 'node:path'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { leaveUnsummed, writeBooks } from './books.ts'
import { answer, dismiss, launch } from './children.ts'
import { quantile, ratios, type Figure, type Section } from './figures.ts'
import type { Load, Loaded } from './http-load.ts'
import { inTurns, type Contestant } from './paired.ts'
import { serveCloud, type ServedCloud } from './served-cloud.ts'

export interface SearchBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Searches in a round, in each of the hubs. */
  requests: number
  /** Past orders of the hubs. */
  sizes: readonly number[]
}

const PRODUCTS = 5000
const WARM_UP = 300
/** Requests of the observed caller while another caller searches without pause. */
const WATCHED = 300
/** Each key may search 90 times a minute. */
const KEYS = 400

const list = '/api/v1/owners/hubs/all_orders_paginated/?hub_id=1&limit=20'
const searches = {
  'a word that no order has': `${list}&search=tortoise`,
  'two words that are never in one name': `${list}&search=chocolate%20tea`,
  'a name that a few orders have': `${list}&search=green%20tea%2024`,
}

/** Measures an owner's search in hubs with few, more and many past orders, with 5,000 names each. */
export async function benchSearch(options: SearchBench): Promise<Section> {
  const { runtime, folder, rounds, requests, sizes } = options
  const hubs: { cloud: ServedCloud; keys: string[] }[] = []
  try {
    for (const orders of sizes) hubs.push(await openHub(runtime, folder, orders))
    const named = sizes.map((size) => size.toLocaleString('en'))
    const figures: Figure[] = []
    for (const [name, path] of Object.entries(searches)) {
      const measured = await inTurns(
        hubs.map(({ cloud, keys }) => asking(cloud, keys, path)),
        { rounds, requests, warmUp: WARM_UP, connections: 1 },
      )
      for (const [index, { processor, p50 }] of measured.entries()) {
        const at = `${name}, ${named[index]} orders`
        const growth = { of: 'orders', at: sizes[index]!, line: name }
        figures.push({ name: `${at}: processor`, values: processor, unit: 'ms', aim: 'at most 5', growth })
        figures.push({ name: `${at}: p50`, values: p50, unit: 'ms' })
      }
      figures.push({
        name: `${name}: processor at ${named.at(-1)} to ${named[0]}`,
        values: ratios(measured.at(-1)!.processor, measured[0]!.processor),
        unit: 'times',
        aim: 'at most 2',
      })
    }
    figures.push(...(await othersMeanwhile(hubs.at(-1)!, rounds, named.at(-1)!)))
    return {
      title: `searching a hub's orders, ${PRODUCTS.toLocaleString('en')} names (SQLite, ${rounds} rounds of ${requests})`,
      figures,
      notes: ['HTTP over loopback from a process of its own, one at a time; the whole request'],
    }
  } finally {
    for (const { cloud } of hubs) await cloud.stop()
  }
}

async function openHub(runtime: Runtime, folder: string, orders: number) {
  const file = join(folder, `${orders}.sqlite`)
  const db = await writeBooks({ url: `sqlite:${file}`, orders, products: PRODUCTS, now: runtime.clock.now() })
  await leaveUnsummed(db)
  const keys: string[] = []
  for (let n = 0; n < KEYS; n += 1) {
    const request = { name: `bench ${n}`, ownerId: 1, hubs: '*', expiresAt: null } as const
    keys.push((await issueApiKey(db.kysely, runtime, { ...request, scopes: ['orders:read'] })).key)
  }
  await db.close()
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, `cloud-${orders}`),
    database: file,
  })
  return { cloud, keys }
}

function asking({ port, pid }: ServedCloud, keys: readonly string[], path: string): Contestant {
  let used = 0
  return {
    name: path,
    port,
    pid,
    requests: (count) =>
      Array.from(
        { length: count },
        () => `GET ${path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: ${keys[used++ % keys.length]!}\r\n\r\n`,
      ),
  }
}

/** Measures another caller's requests during continuous searches, and without them. */
async function othersMeanwhile(
  { cloud, keys }: { cloud: ServedCloud; keys: readonly string[] },
  rounds: number,
  orders: string,
): Promise<Figure[]> {
  const [searcher, watched] = [launch('http-load'), launch('http-load')]
  const half = keys.length / 2
  const pages = asking(cloud, keys.slice(half), list)
  const search = asking(cloud, keys.slice(0, half), searches['two words that are never in one name'])
  const alone: number[] = []
  const beside: number[] = []
  const send = async (child: typeof searcher, from: Contestant, count: number): Promise<Loaded> => {
    const loaded = answer(child)
    child.send({ port: from.port, requests: from.requests(count), connections: 1 } satisfies Load)
    return (await loaded) as Loaded
  }
  async function withoutPause(end: AbortSignal): Promise<void> {
    while (!end.aborted) await send(searcher, search, 20)
  }
  try {
    for (let round = 0; round < rounds; round += 1) {
      alone.push(quantile((await send(watched, pages, WATCHED)).times, 0.99))
      const watching = new AbortController()
      const searching = withoutPause(watching.signal)
      beside.push(quantile((await send(watched, pages, WATCHED)).times, 0.99))
      watching.abort()
      await searching
    }
  } finally {
    await Promise.all([dismiss(searcher), dismiss(watched)])
  }
  return [
    { name: `a page of orders, p99, ${orders} orders`, values: alone, unit: 'ms' },
    { name: `the same while another one searches without pause`, values: beside, unit: 'ms' },
  ]
}
