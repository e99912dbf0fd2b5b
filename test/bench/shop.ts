import assert from 'node:assert/strict'
import { join } from 'node:path'
import { sql } from 'kysely'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { leaveUnsummed, writeBooks, writeHub, writeOwner } from './books.ts'
import { BINS, type CartsHub, writeCarts, writePresence } from './carts.ts'
import { answer, dismiss, launch } from './children.ts'
import { ratios, type Figure, type Section } from './figures.ts'
import { besideBare, inTurns, type Contestant, type PairedOptions } from './paired.ts'
import { addressOf, serveCloud, tokensOf, type ServedCloud } from './served-cloud.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { createPostgresDatabase } from '../process/chaos/postgres.ts'

export interface ShopBench {
  runtime: Runtime
  folder: string
  rounds: number
  /** Searches in a round, to each side; payments are a tenth of them. */
  requests: number
  /** Past orders of the smaller and the larger hub. */
  few: number
  many: number
}

const PRODUCTS = 5000
const SEARCH_WARM_UP = 2000
/**
 * Both programs then run compiled code. On PostgreSQL and a busy machine the bare one takes 5.6 ms of processor time for each of the first 200
 * payments, 3.7 and 2.6 for the next, and 2.1 after 600; Larder takes 19, 14.5 and then less than 15.
 */
const PAY_WARM_UP = 800
/**
 * Hubs beside hub 1, which has a long past. Carts are paid there: a hub without a free bin takes no payment.
 */
const PAYING_HUBS = 80
const PRODUCTS_THERE = 50
const CONNECTIONS = 4
/** Simultaneous payers. */
const GUESTS = 16
const DRAINED_MS = 20_000

interface Shop {
  cloud: ServedCloud
  db: CloudDatabase
  carts: number[]
  tokens: string[]
}

/**
 * Measures a customer's search among 5,000 products, and a card payment of a cart, over real HTTP: the real
 * cloud program for a hub with few past orders and one with many, and a bare one on a copy of the latter.
 */
export async function benchShop(options: ShopBench): Promise<Section> {
  const { runtime, folder, rounds } = options
  const payments = Math.min(PAYING_HUBS * BINS.length, Math.max(10, Math.ceil(options.requests / 10)))
  const carts = PAY_WARM_UP + rounds * payments
  const small = await openHub(runtime, folder, 'few', options.few, carts)
  const large = await openHub(runtime, folder, 'many', options.many, carts)
  const copy = join(folder, 'bare.sqlite')
  await sql`vacuum into ${copy}`.execute(large.db.kysely)
  const bareReads = launch('bare-reads', [copy, large.cloud.baseUrl])
  const barePay = launch('bare-pay', [copy])
  try {
    const { port: readPort } = (await answer(bareReads)) as { port: number }
    const { port: payPort } = (await answer(barePay)) as { port: number }
    const run: PairedOptions = {
      rounds,
      requests: options.requests,
      warmUp: SEARCH_WARM_UP,
      connections: CONNECTIONS,
    }
    const search = [
      searchOf(small.cloud),
      searchOf(large.cloud),
      { name: 'bare', port: readPort, pid: bareReads.pid!, requests: (n: number) => repeated(n, bareSearch) },
    ]
    await sameAnswers(large.cloud.port, readPort)
    const [fewSearch, manySearch, bareSearches] = await inTurns(search, run)
    await Promise.all([small.cloud.phase('paying'), large.cloud.phase('paying')])
    const paying = [
      payOf(small, runtime),
      payOf(large, runtime),
      barePayments(large.carts, payPort, barePay.pid!),
    ]
    const paid = { ...run, requests: payments, warmUp: PAY_WARM_UP, connections: GUESTS }
    const [fewPay, manyPay, barePays] = await inTurns(paying, paid)
    const postgres = process.env['TEST_POSTGRES_URL']
    const onPostgres = postgres === undefined ? [] : await payOnPostgres(runtime, folder, postgres, paid)
    const [few, many] = [options.few.toLocaleString('en'), options.many.toLocaleString('en')]
    const flat = (name: string, of: number[], by: number[]) => ({
      name: `${name}: processor at ${many} orders to ${few}`,
      values: ratios(of, by),
      unit: 'times',
      aim: 'flat',
    })
    return {
      title: `a customer's search in ${PRODUCTS.toLocaleString('en')} products, and paying (SQLite, ${rounds} rounds of ${options.requests} and ${payments})`,
      figures: [
        ...besideBare('search', manySearch!, bareSearches!),
        flat('search', manySearch!.processor, fewSearch!.processor),
        ...besideBare('pay', manyPay!, barePays!),
        flat('pay', manyPay!.processor, fewPay!.processor),
        ...onPostgres,
      ],
      notes: [
        'HTTP over loopback from a process of its own; Larder: identity or address, limit, validation, deals, availability',
        'paying is three durable commits on either side; Larder’s processor sends its event half a second later, over HTTP, signed, and mostly within the same block: its rate and its processor time hold both',
        ...(postgres === undefined ? ['without TEST_POSTGRES_URL nothing was paid on PostgreSQL'] : []),
      ],
    }
  } finally {
    await Promise.all([small.cloud.stop(), large.cloud.stop(), dismiss(bareReads), dismiss(barePay)])
    await Promise.all([small.db.close(), large.db.close()])
  }
}

/** Payments at hubs without a past; the bare program has its own database on the same server. */
async function payOnPostgres(
  runtime: Runtime,
  folder: string,
  serverUrl: string,
  run: PairedOptions,
): Promise<Figure[]> {
  const count = run.warmUp + run.rounds * run.requests
  const databases = [
    await createPostgresDatabase(serverUrl, runtime),
    await createPostgresDatabase(serverUrl, runtime),
  ]
  const [ours, theirs] = databases.map(({ url }) => url) as [string, string]
  const now = runtime.clock.now()
  const [db, bareDb] = [openDatabase({ url: ours }), openDatabase({ url: theirs })]
  for (const one of [db, bareDb]) await writeOwner(one)
  const carts = await writePayingHubs(db, count, { now, firstProduct: 1 })
  await writePayingHubs(bareDb, count, { now, firstProduct: 1 })
  await bareDb.close()
  const environment = { DATABASE_URL: ours }
  const cloud = await serveCloud({
    clock: runtime.clock,
    folder: join(folder, 'postgres'),
    database: '',
    environment,
  })
  const bare = launch('bare-pay-postgres', [theirs])
  try {
    const { port } = (await answer(bare)) as { port: number }
    const tokens = await tokensOf(cloud, count)
    const larder = payOf({ cloud, db, carts, tokens }, runtime)
    const [larderPays, barePays] = await inTurns([larder, barePayments(carts, port, bare.pid!)], run)
    return besideBare('pay on PostgreSQL', larderPays!, barePays!)
  } finally {
    await Promise.all([cloud.stop(), dismiss(bare)])
    await db.close()
    for (const database of databases) await database.remove()
  }
}

async function openHub(
  runtime: Runtime,
  folder: string,
  name: string,
  orders: number,
  count: number,
): Promise<Shop> {
  const { clock } = runtime
  const now = clock.now()
  const file = join(folder, `${name}.sqlite`)
  const db = await writeBooks({ url: `sqlite:${file}`, orders, products: PRODUCTS, now })
  await leaveUnsummed(db)
  const carts = await writePayingHubs(db, count, { now, firstProduct: 1 + PRODUCTS })
  const cloud = await serveCloud({ clock, folder: join(folder, name), database: file })
  return { cloud, db, carts, tokens: await tokensOf(cloud, count) }
}

/** Hubs with carts to pay. */
async function writePayingHubs(
  db: CloudDatabase,
  count: number,
  { now, firstProduct }: { now: number; firstProduct: number },
): Promise<number[]> {
  const hubs: CartsHub[] = Array.from({ length: PAYING_HUBS }, (_, index) => ({
    id: 2 + index,
    firstProduct: firstProduct + index * PRODUCTS_THERE,
    products: PRODUCTS_THERE,
  }))
  for (const hub of hubs) {
    await writeHub(db, hub.id, hub)
    await writePresence(db, hub.id, now)
  }
  const carts = await writeCarts(db, { count, hubs, now })
  return carts.map(({ order }) => order)
}

const repeated = (count: number, request: string): string[] => Array.from({ length: count }, () => request)
const bareSearch = 'GET /products?hub_id=1&product_name=yogurt HTTP/1.1\r\nHost: bench\r\n\r\n'
const larderSearch = '/hubs/1/products?product_name=yogurt&size=20'

function searchOf({ port, pid }: ServedCloud): Contestant {
  let calls = 0
  return {
    name: 'Larder',
    port,
    pid,
    requests: (count) =>
      Array.from(
        { length: count },
        () =>
          `GET ${larderSearch} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: ${addressOf((calls += 1) % 60_000)}\r\n\r\n`,
      ),
  }
}

const post = (path: string, body: object, headers = ''): string => {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n${headers}\r\n${text}`
}

function payOf({ cloud, db, carts, tokens }: Shop, { clock }: Runtime): Contestant {
  let next = 0
  return {
    name: 'Larder',
    port: cloud.port,
    pid: cloud.pid,
    requests: (count) =>
      Array.from({ length: count }, () => {
        const mine = next++
        const body = { order_id: carts[mine]!, payment_method_id: 'pm_card_visa' }
        return post('/users/payments/pay', body, `Authorization: Bearer ${tokens[mine]!}\r\n`)
      }),
    rest: async () => {
      const isLeft = async () =>
        (await db.kysely
          .selectFrom('sandbox_events')
          .select('id')
          .where('delivered_at', 'is', null)
          .limit(1)
          .executeTakeFirst()) !== undefined
      for (const end = clock.monotonic() + DRAINED_MS; await isLeft(); await sleep(clock, 50))
        if (clock.monotonic() > end) throw new Error('events of the processor are not delivered')
      // All orders are collected, so that bins are free again.
      await db.kysely
        .updateTable('orders')
        .set({ processing_status: OrderStatus.COMPLETED })
        .where('processing_status', '=', OrderStatus.QUEUED)
        .execute()
    },
  }
}

function barePayments(carts: readonly number[], port: number, pid: number): Contestant {
  let next = 0
  return {
    name: 'bare',
    port,
    pid,
    requests: (count) => Array.from({ length: count }, () => post('/pay', { order_id: carts[next++]! })),
  }
}

async function sameAnswers(larder: number, bare: number): Promise<void> {
  const read = async (url: string) => (await fetch(url)).json()
  assert.deepEqual(
    await read(`http://127.0.0.1:${larder}${larderSearch}`),
    await read(`http://127.0.0.1:${bare}/products?hub_id=1&product_name=yogurt`),
  )
}
