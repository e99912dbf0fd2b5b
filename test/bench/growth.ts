import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { sleep, type Runtime } from '../../protocol/model/runtime.ts'
import { createPostgresDatabase } from '../process/chaos/postgres.ts'
import { freePorts } from '../support/ports.ts'
import { writeBooks } from './books.ts'
import { dismiss, launch } from './children.ts'
import type { Figure, Section } from './figures.ts'
import { seedFleet, tell } from './fleet.ts'
import { processorMs, writtenBytes } from './process-figures.ts'
import { serveCloud } from './served-cloud.ts'

export interface GrowthBench {
  runtime: Runtime
  folder: string
  hubs: number
  /** Duration of each measured phase. */
  seconds: number
}

/**
 * All periods of a hub's presence are this many times shorter, in the cloud and at the hubs, so that a heartbeat costs
 * the same.
 */
const FASTER = 5
const HEARTBEAT_MS = 15_000
const paced = {
  LEASE_MS: `${45_000 / FASTER}`,
  ONLINE_WITHIN_MS: `${90_000 / FASTER}`,
  GATEWAY_GATHER_MS: `${1000 / FASTER}`,
}
const PASSWORD = 'a secret'
/** Entries of each hub, one after another, because a hub reports most of them alone. */
const ENTRIES = 10
/** The work after a start, and after the connections, has ended. */
const SETTLE_MS = 10_000
const PATIENCE_MS = 180_000
const ORDERS = 10_000

/** A hub's day: heartbeats by the SPEC, and orders with their ledger entries as in the demo. */
const DAY = { heartbeats: 86_400_000 / HEARTBEAT_MS, orders: 40, entriesOfOrder: 30 }
/** The busiest hour has this multiple of the average. */
const PEAK = 3
const DAY_S = 86_400
/** A process should be busy for at most this share of a core at the peak. */
const BUSY = 0.6
/** Processor time of a broker for one message (`cloud/README.md`, the gateway). */
const BROKER_MS = 0.034
/** Messages of a ledger entry: its batch and the acknowledgement, mostly with some other entries. */
const MESSAGES_OF_ENTRY = 0.5

/** The cost of one heartbeat or one entry. */
interface Cost {
  processorMs: number
  /** Bytes written to the disk: on PostgreSQL its write-ahead log. */
  writtenBytes: number
}

interface Costs {
  heartbeat: Cost
  entry: Cost
  /** Stored bytes of an order with two lines, its payment and its audit record, with all indexes. */
  orderBytes: number
}

/**
 * Measures what one hub costs the real service, with simulated hubs at an accelerated pace, and calculates the needs of
 * larger fleets.
 */
export async function benchGrowth(options: GrowthBench): Promise<Section> {
  const { runtime, folder, hubs, seconds } = options
  const figures: Figure[] = []
  const notes = [
    `${hubs} hubs; ${FASTER} times the pace of real hubs for ${seconds} s, then ${ENTRIES} ledger entries of each hub, one after another; less the service's work without hubs`,
    `a hub's day: ${DAY.heartbeats} heartbeats, ${DAY.orders} orders with ${DAY.entriesOfOrder} entries each; the peak is ${PEAK} times the average; a process is busy for ${BUSY} of a core`,
    'needs: the processor time of requests, webhooks and readers comes in addition (part shop)',
  ]
  const file = join(folder, 'growth.sqlite')
  await measured('SQLite', `sqlite:${file}`, () => Promise.resolve(statSync(file).size))
  const postgres = process.env['TEST_POSTGRES_URL']
  if (postgres === undefined) notes.push('without TEST_POSTGRES_URL nothing was measured on PostgreSQL')
  else {
    const database = await createPostgresDatabase(postgres, runtime)
    try {
      await measured('PostgreSQL', database.url, serverBytes)
      notes.push('the log of PostgreSQL is that of its whole server: nothing else may write there meanwhile')
    } finally {
      await database.remove()
    }
  }
  return { title: 'growth of a fleet', figures, notes }

  async function measured(
    name: string,
    url: string,
    sizeOf: (db: CloudDatabase) => Promise<number>,
  ): Promise<void> {
    const costs = await measure(options, url, sizeOf)
    const figure = (what: string, value: number, unit: string): void =>
      void figures.push({ name: `${name}: ${what}`, values: [value], unit })
    figure('processor, a heartbeat', costs.heartbeat.processorMs, 'ms')
    figure('written, a heartbeat', costs.heartbeat.writtenBytes, 'bytes')
    figure('processor, a ledger entry', costs.entry.processorMs, 'ms')
    figure('written, a ledger entry', costs.entry.writtenBytes / 1000, 'kB')
    figure('stored, an order', costs.orderBytes / 1000, 'kB')
    for (const fleet of [10_000, 100_000, 1_000_000]) {
      const need = needOf(costs, fleet)
      const at = fleet.toLocaleString('en')
      figure(`${at} hubs, processes at the peak`, need.processes, '')
      figure(`${at} hubs, brokers at the peak`, need.brokers, '')
      figure(`${at} hubs, written`, need.writtenGb, 'GB a day')
      figure(`${at} hubs, stored orders`, need.storedGb, 'GB a year')
      notes.push(`${name}, ${at} hubs: ${need.wall}`)
    }
  }
}

/** The bytes of a server's database, and its log. */
const serverBytes = async (db: CloudDatabase): Promise<number> =>
  one(db, sql<{ n: number }>`select pg_database_size(current_database()) as n`)
const logBytes = (db: CloudDatabase): Promise<number> =>
  one(db, sql<{ n: number }>`select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as n`)
const one = async (db: CloudDatabase, query: ReturnType<typeof sql<{ n: number }>>): Promise<number> =>
  (await query.execute(db.kysely)).rows[0]!.n

async function measure(
  { runtime, folder, hubs: count, seconds }: GrowthBench,
  url: string,
  sizeOf: (db: CloudDatabase) => Promise<number>,
): Promise<Costs> {
  const { clock } = runtime
  await seedFleet(runtime, url, count, PASSWORD)
  const [port, mqttPort] = (await freePorts(2)) as [number, number]
  const data = join(folder, `data-${port}`)
  mkdirSync(data)
  const environment = { ...paced, PORT: `${port}`, MQTT_PORT: `${mqttPort}`, DATABASE_URL: url }
  const cloud = await serveCloud({ clock, folder: data, database: '', environment })
  const fleet = [`${count}`, `mqtt://127.0.0.1:${mqttPort}`, PASSWORD, `${HEARTBEAT_MS / FASTER}`]
  const hubs = launch('fleet-hubs', fleet)
  const db = openDatabase({ url })
  const spent = async (): Promise<Cost> => ({
    processorMs: processorMs(cloud.pid),
    writtenBytes: db.kind === 'sqlite' ? writtenBytes(cloud.pid) : await logBytes(db),
  })
  const during = async (work: () => Promise<unknown>): Promise<Cost & { ms: number }> => {
    const [from, fromMs] = [await spent(), clock.monotonic()]
    await work()
    const to = await spent()
    return {
      processorMs: to.processorMs - from.processorMs,
      writtenBytes: to.writtenBytes - from.writtenBytes,
      ms: clock.monotonic() - fromMs,
    }
  }
  const until = async (
    isReached: (state: { welcomed: number; pending: number }) => boolean,
  ): Promise<void> => {
    for (const end = clock.monotonic() + PATIENCE_MS; ; await sleep(clock, 20)) {
      if (isReached(await tell(hubs, { type: 'state' }))) return
      if (clock.monotonic() > end) throw new Error(`the hubs do not converge; see ${data}/output.log`)
    }
  }
  try {
    await sleep(clock, SETTLE_MS)
    const atRest = await during(() => sleep(clock, (seconds * 1000) / 2))
    await tell(hubs, { type: 'start' })
    await until(({ welcomed }) => welcomed === count)
    await sleep(clock, SETTLE_MS)
    const beating = await during(() => sleep(clock, seconds * 1000))
    const reporting = await during(async () => {
      for (let n = 0; n < ENTRIES; n += 1) {
        await tell(hubs, { type: 'report', entries: 1 })
        await until(({ pending }) => pending === 0)
      }
    })
    const beats = (count * beating.ms * FASTER) / HEARTBEAT_MS
    const share = (of: Cost & { ms: number }, without: Cost & { ms: number }, by: number): Cost => {
      const less = (key: keyof Cost) => Math.max(0, of[key] - without[key] * (of.ms / without.ms)) / by
      return { processorMs: less('processorMs'), writtenBytes: less('writtenBytes') }
    }
    return {
      heartbeat: share(beating, atRest, beats),
      entry: share(reporting, beating, count * ENTRIES),
      orderBytes: await storedBytes(runtime, folder, url, sizeOf),
    }
  } finally {
    await dismiss(hubs)
    await cloud.stop()
    await db.close()
  }
}

/** The growth of a second database by `ORDERS` orders. */
async function storedBytes(
  runtime: Runtime,
  folder: string,
  url: string,
  sizeOf: (db: CloudDatabase) => Promise<number>,
): Promise<number> {
  const now = runtime.clock.now()
  if (url.startsWith('sqlite:')) {
    const size = async (orders: number): Promise<number> => {
      const file = join(folder, `orders-${orders}.sqlite`)
      const copy = `${file}.copy`
      const db = await writeBooks({ url: `sqlite:${file}`, orders, now })
      await sql`vacuum into ${copy}`.execute(db.kysely)
      await db.close()
      return statSync(copy).size
    }
    return ((await size(2 * ORDERS)) - (await size(ORDERS))) / ORDERS
  }
  const size = async (orders: number): Promise<number> => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    const db = await writeBooks({ url: database.url, orders, now })
    const bytes = await sizeOf(db)
    await db.close()
    await database.remove()
    return bytes
  }
  return ((await size(2 * ORDERS)) - (await size(ORDERS))) / ORDERS
}

/** The needs of a fleet, by the costs of one heartbeat, entry and order. */
export function needOf({ heartbeat, entry, orderBytes }: Costs, fleet: number) {
  const entries = DAY.orders * DAY.entriesOfOrder
  const dailyMs = heartbeat.processorMs * DAY.heartbeats + entry.processorMs * entries * PEAK
  const dailyMessages = DAY.heartbeats + entries * MESSAGES_OF_ENTRY * PEAK
  const cores = (fleet * dailyMs) / 1000 / DAY_S
  const brokerCores = (fleet * dailyMessages * BROKER_MS) / 1000 / DAY_S
  const writtenGb = (fleet * (heartbeat.writtenBytes * DAY.heartbeats + entry.writtenBytes * entries)) / 1e9
  const storedGb = (fleet * DAY.orders * 365 * orderBytes) / 1e9
  const [processes, brokers] = [Math.ceil(cores / BUSY), Math.ceil(brokerCores / BUSY)]
  const walls = [
    { at: cores / BUSY, text: 'a single process (then: several processes with an external broker)' },
    { at: brokerCores / BUSY, text: 'a single broker (then: a cluster)' },
    { at: writtenGb / 2000, text: "the database's writes, at 2 TB a day (then: a second installation)" },
    { at: storedGb / 4000, text: 'storage, at 4 TB of orders a year (then: export and archive)' },
  ].toSorted((a, b) => b.at - a.at)
  const first = walls[0]!
  const wall =
    first.at <= 1
      ? `no wall; the nearest is ${first.text}, at ${Math.round(first.at * 100)} %`
      : `the first wall is ${first.text}, needed ${first.at.toFixed(1)} times`
  return { processes, brokers, writtenGb, storedGb, wall }
}
