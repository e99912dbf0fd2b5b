import { statfs } from 'node:fs/promises'
import { sql } from 'kysely'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Served } from '../../platform/http/app.ts'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import type { ProcessFacts } from './system-info.ts'

/** What is measured is told to Prometheus; names follow its conventions (prometheus.io/docs/practices/naming). */
export interface Metrics {
  /** A request was answered. */
  onServed(served: Served): void
  /** All of it, as text. */
  read(): Promise<{ type: string; text: string }>
}

export interface MetricsOptions {
  /** On the connections of the background. */
  context: CloudContext
  broker: ProcessFacts['broker']
  refused: ProcessFacts['refused']
  commit: string
  /** When the certificates of this process end. */
  certificates?: () => readonly { name: string; endsAt: number }[]
  /** Folders whose free space is measured, by the names of their settings. */
  folders?: Readonly<Record<string, string>>
  /** Connections to the broker that ended or failed since the start. */
  brokerLosses?: () => number
}

/** Gauges of Node's that end in `_total`, which is for counters. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]
const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function createMetrics(options: MetricsOptions): Metrics {
  const register = new Registry()
  const registers = [register]
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const { gauge, counter } = makersIn(registers)
  const requests = counter(
    'larder_http_requests_total',
    'Requests answered, by route as documented, method and status.',
    'method',
    'route',
    'status',
  )
  const durations = new Histogram({
    name: 'larder_http_request_duration_seconds',
    help: 'How long answers took, by route as documented.',
    labelNames: ['route'] as const,
    buckets: SECONDS,
    registers,
  })
  const build = gauge('larder_build_info', 'Always 1; its labels say what runs.', 'version', 'commit')
  build.set({ version: PRODUCT_VERSION, commit: options.commit }, 1)
  const ofProcess = processGauges(registers, options)
  const ofBooks = bookGauges(registers, options.context)
  return {
    onServed({ method, route, status, seconds }) {
      // A method that no route has may be any text.
      const known = METHODS.has(method) ? method : 'other'
      requests.inc({ method: known, route, status: String(status) })
      durations.observe({ route }, seconds)
    },
    async read() {
      await ofProcess()
      await ofBooks()
      return { type: register.contentType, text: await register.metrics() }
    },
  }
}

const makersIn = (registers: Registry[]) => ({
  gauge: <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers }),
  counter: <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers }),
})

/** What this process knows by itself. */
function processGauges(registers: Registry[], options: MetricsOptions): () => Promise<void> {
  const { context, broker, refused, certificates, folders = {}, brokerLosses } = options
  const { gauge, counter } = makersIn(registers)
  const connected = gauge('larder_mqtt_connected', 'Whether this process is connected to its broker.')
  const clients = gauge('larder_mqtt_clients', 'Clients of the embedded broker.')
  const connections = gauge(
    'larder_database_connections',
    'Connections to PostgreSQL, by use and state.',
    'pool',
    'state',
  )
  const limit = gauge('larder_database_connections_limit', 'The most connections of a use.', 'pool')
  const waiting = gauge('larder_database_waiting', 'Callers that wait for a connection.', 'pool')
  const late = counter(
    'larder_database_refused_total',
    'Callers that were given no connection in time.',
    'pool',
  )
  const losses = counter(
    'larder_mqtt_connections_lost_total',
    'Connections to the broker that ended or failed since the start.',
  )
  const expiry = gauge(
    'larder_certificate_expiry_timestamp_seconds',
    'When a certificate ends, in seconds since the Unix epoch.',
    'certificate',
  )
  const free = gauge(
    'larder_disk_free_bytes',
    'Free space on the disk of a folder, by its setting.',
    'folder',
  )
  const refusals = counter(
    'larder_refused_total',
    'Credentials, rights and messages that were refused.',
    'kind',
  )
  return async () => {
    losses.reset()
    losses.inc(brokerLosses?.() ?? 0)
    expiry.reset()
    for (const { name, endsAt } of certificates?.() ?? []) expiry.set({ certificate: name }, endsAt / 1000)
    free.reset()
    for (const [folder, path] of Object.entries(folders)) {
      const disk = await statfs(path).catch(() => undefined)
      if (disk) free.set({ folder }, disk.bavail * disk.bsize)
    }
    const { connected: isConnected, clients: count } = broker()
    connected.set(Number(isConnected))
    if (count !== null) clients.set(count)
    late.reset()
    for (const [pool, state] of Object.entries(context.db.connections())) {
      connections.set({ pool, state: 'busy' }, state.busy)
      connections.set({ pool, state: 'idle' }, state.idle)
      limit.set({ pool }, state.size)
      waiting.set({ pool }, state.waiting)
      late.inc({ pool }, state.refused)
    }
    refusals.reset()
    for (const [kind, count] of Object.entries(refused())) refusals.inc({ kind }, count)
  }
}

const statusNames = new Map<number, string>(
  Object.entries(OrderStatus).map(([name, code]) => [code, name.toLowerCase()]),
)
const ACTIVE = Object.values(OrderStatus).filter((status) => status < OrderStatus.COMPLETED)

type Row = { label: string; value: number | string; age?: number | string | null }

/**
 * What stands in the books of all processes; each tells the same. Each query reads an index of what is open, so that it costs
 * what is under way and not what ever was. While the database does not answer, `larder_database_up` says so and these are left
 * out: a scrape never waits for longer than one statement of the background may take.
 */
function bookGauges(registers: Registry[], { db, runtime, settings }: CloudContext): () => Promise<void> {
  const { gauge } = makersIn(registers)
  const up = gauge('larder_database_up', 'Whether the database answered this scrape.')
  const hubs = gauge('larder_hubs', 'Hubs by state: online, offline, never (connected).', 'state')
  const silence = gauge(
    'larder_hub_silence_seconds',
    'How long the online hub longest unheard has been silent.',
  )
  const waiting = gauge('larder_outbox_entries', 'Entries that hubs have not acknowledged.')
  const behind = gauge('larder_outbox_hubs', 'Hubs that have not acknowledged all entries.')
  const work = gauge('larder_due_work', 'Work that is due now, by kind.', 'kind')
  const age = gauge(
    'larder_due_work_age_seconds',
    'How long the oldest due work of a kind has been due.',
    'kind',
  )
  const exhausted = gauge('larder_due_work_exhausted', 'Work that a person has to look at, by kind.', 'kind')
  const orders = gauge('larder_orders', 'Orders that are not at their end, by status.', 'status')
  const refunds = gauge('larder_refunds_due', 'Refunds that have not arrived.')
  const owed = gauge('larder_refunds_due_cents', 'What they amount to, in cents of the currency.')
  const letters = gauge('larder_dead_letters', 'Entries of hubs that could not be applied.')
  const keys = gauge('larder_api_keys_expiring', 'API keys that expire within CERTIFICATE_WARN_MS.')
  const labelled = [hubs, work, age, exhausted, orders]
  const single = [silence, waiting, behind, refunds, owed, letters, keys]

  const rowsOf = async (query: ReturnType<typeof sql<Row>>): Promise<Row[]> =>
    (await query.execute(db.kysely)).rows
  const now = (): number => runtime.clock.now()
  /** A family of kinds has a member for each webhook. */
  const family =
    db.kind === 'sqlite' ? sql`substr(kind, 1, instr(kind || '/', '/') - 1)` : sql`split_part(kind, '/', 1)`

  async function readHubs(): Promise<void> {
    const since = now() - settings.onlineWithinMs
    const [row] = (
      await sql<{ total: number; known: number; online: number; oldest: number | null }>`
        select (select count(*) from hubs) as total, count(*) as known,
          coalesce(sum(case when last_heard_at > ${since} and has_left = 0 then 1 else 0 end), 0) as online,
          min(case when last_heard_at > ${since} and has_left = 0 then last_heard_at end) as oldest
        from hub_sessions`.execute(db.kysely)
    ).rows
    const { total, known, online, oldest } = row!
    hubs.set({ state: 'online' }, online)
    hubs.set({ state: 'offline' }, known - online)
    hubs.set({ state: 'never' }, total - known)
    silence.set(oldest === null ? 0 : Math.max(0, (now() - oldest) / 1000))
  }

  async function readOpen(): Promise<void> {
    const [outbox] = await rowsOf(
      sql<Row>`select 'all' as label, coalesce(sum(last - base), 0) as value, count(*) as age
        from hub_outboxes where last > base`,
    )
    waiting.set(Number(outbox!.value))
    behind.set(Number(outbox!.age))
    const due = await rowsOf(
      sql<Row>`select ${family} as label, count(*) as value, min(due_at) as age from due_work
        where due_at <= ${now()} group by 1`,
    )
    for (const { label: kind, value, age: since } of due) {
      work.set({ kind }, Number(value))
      age.set({ kind }, (now() - Number(since)) / 1000)
    }
    const left = await rowsOf(
      sql<Row>`select ${family} as label, count(*) as value from due_work where due_at is null group by 1`,
    )
    for (const { label: kind, value } of left) exhausted.set({ kind }, Number(value))
    for (const status of ACTIVE) orders.set({ status: statusNames.get(status)! }, 0)
    const active = await rowsOf(
      sql<Row>`select processing_status as label, count(*) as value from orders
        where processing_status in (${sql.join(ACTIVE.map((status) => sql.lit(status)))}) group by 1`,
    )
    for (const { label, value } of active)
      orders.set({ status: statusNames.get(Number(label))! }, Number(value))
    const [refund] = await rowsOf(
      sql<Row>`select 'all' as label, count(*) as value, coalesce(sum(refunds.amount), 0) as age
        from due_work join refunds on refunds.id = cast(due_work.subject as bigint)
        where due_work.kind = 'refund' and refunds.status <> 'succeeded'`,
    )
    refunds.set(Number(refund!.value))
    owed.set(Number(refund!.age))
    const [dead] = await rowsOf(sql<Row>`select 'all' as label, count(*) as value from dead_letters`)
    letters.set(Number(dead!.value))
    const [expiring] = await rowsOf(
      sql<Row>`select 'all' as label, count(*) as value from api_keys where revoked_at is null
        and expires_at > ${now()} and expires_at < ${now() + settings.certificateWarnMs}`,
    )
    keys.set(Number(expiring!.value))
  }

  return async () => {
    // What is no longer there is not told of.
    for (const each of labelled) each.reset()
    try {
      await readHubs()
      await readOpen()
      up.set(1)
    } catch {
      for (const each of labelled) each.reset()
      for (const each of single) each.remove()
      up.set(0)
    }
  }
}
