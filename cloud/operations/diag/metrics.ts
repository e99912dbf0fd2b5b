import { statfs } from 'node:fs/promises'
import { sql } from 'kysely'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { Vitals } from '../../../protocol/model/vitals.ts'
import { vitalNames } from '../../gateway/heartbeats.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Served } from '../../platform/http/app.ts'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import type { ProcessFacts } from './system-info.ts'

/** Metrics for Prometheus; names follow its conventions (prometheus.io/docs/practices/naming). */
export interface Metrics {
  /** A request was answered. */
  onServed(served: Served): void
  /** All metrics, as text. */
  read(): Promise<{ type: string; text: string }>
}

export interface MetricsOptions {
  /** Uses the background connections. */
  context: CloudContext
  broker: ProcessFacts['broker']
  refused: ProcessFacts['refused']
  commit: string
  /** The ends of this process's certificates. */
  certificates?: () => readonly { name: string; endsAt: number }[]
  /** Folders for the metric of free space, by the names of their settings. */
  folders?: Readonly<Record<string, string>>
  /** Connections to the broker that ended or failed since the start. */
  brokerLosses?: () => number
}

/** Node's gauges with a name in `_total`, which only counters may have. */
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
  const books = bookGauges(registers)
  return {
    onServed({ method, route, status, seconds }) {
      // An unknown method may be any text.
      const known = METHODS.has(method) ? method : 'other'
      requests.inc({ method: known, route, status: String(status) })
      durations.observe({ route }, seconds)
    },
    async read() {
      await ofProcess()
      await readBooks(books, options.context)
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

/** Metrics that this process measures without the database. */
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

/** Metrics of all processes, from the database; each process reports the same values. */
function bookGauges(registers: Registry[]) {
  const { gauge } = makersIn(registers)
  return {
    up: gauge('larder_database_up', 'Whether the database answered this scrape.'),
    /** Gauges without a value while the database does not answer. */
    single: {
      silence: gauge(
        'larder_hub_silence_seconds',
        'How long the online hub longest unheard has been silent.',
      ),
      waiting: gauge('larder_outbox_entries', 'Entries that hubs have not acknowledged.'),
      behind: gauge('larder_outbox_hubs', 'Hubs that have not acknowledged all entries.'),
      refunds: gauge('larder_refunds_due', 'Refunds that have not arrived.'),
      owed: gauge('larder_refunds_due_cents', 'What they amount to, in cents of the currency.'),
      letters: gauge('larder_dead_letters', 'Entries of hubs that could not be applied.'),
      keys: gauge('larder_api_keys_expiring', 'API keys that expire within CERTIFICATE_WARN_MS.'),
    },
    /** Reset before each scrape: a label that has gone must not remain. */
    labelled: {
      hubs: gauge('larder_hubs', 'Hubs by state: online, offline, never (connected).', 'state'),
      work: gauge('larder_due_work', 'Work that is due now, by kind.', 'kind'),
      age: gauge(
        'larder_due_work_age_seconds',
        'How long the oldest due work of a kind has been due.',
        'kind',
      ),
      exhausted: gauge('larder_due_work_exhausted', 'Due work that needs a person, by kind.', 'kind'),
      orders: gauge('larder_orders', 'Orders that are not at their end, by status.', 'status'),
    },
    vitals: vitalNames.map((name) => {
      const [key, factor] = name === 'clock_offset_ms' ? ['clock_offset_seconds', 0.001] : [name, 1]
      return { name, factor, gauge: gauge(`larder_hub_${key}`, Vitals.shape[name].description ?? '', 'hub') }
    }),
  }
}

type BookGauges = ReturnType<typeof bookGauges>

/**
 * Reads the gauges of the database. Each query uses an index of open rows, so that its cost depends on
 * current work and not on the whole history. While the database does not answer, `larder_database_up` is 0
 * and the other gauges are left out. A scrape never waits longer than the background statement timeout.
 */
async function readBooks(gauges: BookGauges, context: CloudContext): Promise<void> {
  const { up, single, labelled, vitals } = gauges
  const reset = (): void => {
    for (const each of [...Object.values(labelled), ...vitals.map(({ gauge }) => gauge)]) each.reset()
  }
  reset()
  try {
    await readHubs(gauges, context)
    await readVitals(gauges, context)
    await readOutboxes(gauges, context)
    await readDueWork(gauges, context)
    await readOrders(gauges, context)
    await readRemedies(gauges, context)
    up.set(1)
  } catch {
    reset()
    for (const each of Object.values(single)) each.remove()
    up.set(0)
  }
}

const rowsOf = async ({ db }: CloudContext, query: ReturnType<typeof sql<Row>>): Promise<Row[]> =>
  (await query.execute(db.kysely)).rows

async function readHubs({ single, labelled }: BookGauges, context: CloudContext): Promise<void> {
  const { db, runtime, settings } = context
  const now = runtime.clock.now()
  const since = now - settings.onlineWithinMs
  const [row] = (
    await sql<{ total: number; known: number; online: number; oldest: number | null }>`
      select (select count(*) from hubs) as total, count(*) as known,
        coalesce(sum(case when last_heard_at > ${since} and has_left = 0 then 1 else 0 end), 0) as online,
        min(case when last_heard_at > ${since} and has_left = 0 then last_heard_at end) as oldest
      from hub_sessions`.execute(db.kysely)
  ).rows
  const { total, known, online, oldest } = row!
  labelled.hubs.set({ state: 'online' }, online)
  labelled.hubs.set({ state: 'offline' }, known - online)
  labelled.hubs.set({ state: 'never' }, total - known)
  single.silence.set(oldest === null ? 0 : Math.max(0, (now - oldest) / 1000))
}

/** The figures of the hubs that are online. */
async function readVitals({ vitals }: BookGauges, { db, runtime, settings }: CloudContext): Promise<void> {
  const rows = await db.kysely
    .selectFrom('hub_vitals')
    .innerJoin('hub_sessions', 'hub_sessions.hub_id', 'hub_vitals.hub_id')
    .selectAll('hub_vitals')
    .where('last_heard_at', '>', runtime.clock.now() - settings.onlineWithinMs)
    .where('has_left', '=', 0)
    .execute()
  for (const { name, factor, gauge } of vitals)
    for (const row of rows) if (row[name] !== null) gauge.set({ hub: row.hub_id }, row[name] * factor)
}

async function readOutboxes({ single }: BookGauges, context: CloudContext): Promise<void> {
  const [outbox] = await rowsOf(
    context,
    sql<Row>`select 'all' as label, coalesce(sum(last - base), 0) as value, count(*) as age
      from hub_outboxes where last > base`,
  )
  single.waiting.set(Number(outbox!.value))
  single.behind.set(Number(outbox!.age))
}

async function readDueWork({ labelled }: BookGauges, context: CloudContext): Promise<void> {
  const now = context.runtime.clock.now()
  // A family of kinds has one member per webhook.
  const family =
    context.db.kind === 'sqlite'
      ? sql`substr(kind, 1, instr(kind || '/', '/') - 1)`
      : sql`split_part(kind, '/', 1)`
  const due = await rowsOf(
    context,
    sql<Row>`select ${family} as label, count(*) as value, min(due_at) as age from due_work
      where due_at <= ${now} group by 1`,
  )
  for (const { label: kind, value, age: since } of due) {
    labelled.work.set({ kind }, Number(value))
    labelled.age.set({ kind }, (now - Number(since)) / 1000)
  }
  const exhausted = await rowsOf(
    context,
    sql<Row>`select ${family} as label, count(*) as value from due_work where due_at is null group by 1`,
  )
  for (const { label: kind, value } of exhausted) labelled.exhausted.set({ kind }, Number(value))
}

async function readOrders({ labelled: { orders } }: BookGauges, context: CloudContext): Promise<void> {
  for (const status of ACTIVE) orders.set({ status: statusNames.get(status)! }, 0)
  const active = await rowsOf(
    context,
    sql<Row>`select processing_status as label, count(*) as value from orders
      where processing_status in (${sql.join(ACTIVE.map((status) => sql.lit(status)))}) group by 1`,
  )
  for (const { label, value } of active)
    orders.set({ status: statusNames.get(Number(label))! }, Number(value))
}

/** Refunds, dead letters and API keys that may need a person. */
async function readRemedies({ single }: BookGauges, context: CloudContext): Promise<void> {
  const now = context.runtime.clock.now()
  const [refund] = await rowsOf(
    context,
    sql<Row>`select 'all' as label, count(*) as value, coalesce(sum(refunds.amount), 0) as age
      from due_work join refunds on refunds.id = cast(due_work.subject as bigint)
      where due_work.kind = 'money/refund' and refunds.status <> 'succeeded'`,
  )
  single.refunds.set(Number(refund!.value))
  single.owed.set(Number(refund!.age))
  const [dead] = await rowsOf(context, sql<Row>`select 'all' as label, count(*) as value from dead_letters`)
  single.letters.set(Number(dead!.value))
  const [expiring] = await rowsOf(
    context,
    sql<Row>`select 'all' as label, count(*) as value from api_keys where revoked_at is null
      and expires_at > ${now} and expires_at < ${now + context.settings.certificateWarnMs}`,
  )
  single.keys.set(Number(expiring!.value))
}
