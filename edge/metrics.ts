import { statfs } from 'node:fs/promises'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import { storageReasons } from '../protocol/model/storage.ts'
import type { Store } from './journal/store.ts'
import type { Serving } from './serving.ts'

export interface HubMetricsOptions {
  hubId: number
  /** The hub, or its stand-in. */
  hub: () => Serving
  store: Pick<Store, 'commits' | 'isFull'> & Partial<Pick<Store, 'failure' | 'bytes'>>
  /** The folder of the journal. */
  folder?: string
}

/** Node's gauges that end in `_total`, which only counters may do. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** The hub's metrics in Prometheus' text format; the names follow its conventions. */
export function createHubMetrics(options: HubMetricsOptions): () => Promise<{ type: string; text: string }> {
  const { hubId, hub, store, folder } = options
  const register = new Registry()
  register.setDefaultLabels({ hub: String(hubId) })
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const gauges = gaugesIn(register)
  return async () => {
    readHub(gauges, hub())
    readStore(gauges, store)
    const disk = folder === undefined ? undefined : await statfs(folder).catch(() => undefined)
    if (disk) gauges.free.set(disk.bavail * disk.bsize)
    return { type: register.contentType, text: await register.metrics() }
  }
}

function gaugesIn(register: Registry) {
  const registers = [register]
  const gauge = <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })
  const counter = <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  gauge('larder_build_info', 'Always 1; its label is the version that runs.', 'version').set(
    { version: PRODUCT_VERSION },
    1,
  )
  return {
    orders: gauge('larder_hub_orders', 'Orders that are at the hub, by what it does with them.', 'phase'),
    unknown: gauge('larder_hub_unknown_operations', 'Motions with an unknown outcome.'),
    accepting: gauge('larder_hub_accepting_orders', 'Whether the hub takes orders.'),
    outbox: gauge(
      'larder_hub_outbox_entries',
      'Entries that the cloud has not acknowledged, by stream.',
      'stream',
    ),
    commits: counter(
      'larder_hub_journal_commits_total',
      'Transactions committed to the journal, each to the disk.',
    ),
    full: gauge('larder_hub_journal_full', 'Whether the disk is full, so that the hub stops selling.'),
    bytes: gauge('larder_hub_journal_bytes', 'Size of the journal and its log. STORE_MAX_MB is the limit.'),
    failing: gauge(
      'larder_hub_storage_failed',
      'Whether the hub cannot use the storage of its journal, by the reason.',
      'reason',
    ),
    free: gauge('larder_disk_free_bytes', "Free space on the disk of the hub's journal."),
    connected: gauge('larder_hub_cloud_connected', 'Whether the cloud has welcomed the hub.'),
    lost: counter(
      'larder_hub_cloud_connections_lost_total',
      'Connections to the broker that ended or failed since the start.',
    ),
    heard: gauge('larder_hub_cloud_silence_seconds', 'How long the cloud has been silent.'),
    quiet: gauge('larder_hub_core_quiet_seconds', 'How long ago the hub handled an event.'),
    up: gauge('larder_hub_link_up', "Whether a controller's line is up.", 'controller'),
    losses: counter('larder_hub_link_losses_total', "How often a controller's line was lost.", 'controller'),
    expiry: gauge(
      'larder_certificate_expiry_timestamp_seconds',
      'When a certificate ends, in seconds since the Unix epoch.',
      'certificate',
    ),
    warmth: gauge(
      'larder_hub_fridge_temperature_celsius',
      'How warm a fridge is; absent while it is not known.',
      'fridge',
    ),
  }
}

type Gauges = ReturnType<typeof gaugesIn>

function readStore({ commits, full, bytes, failing }: Gauges, store: HubMetricsOptions['store']): void {
  commits.reset()
  commits.inc(store.commits())
  full.set(Number(store.isFull()))
  bytes.set(store.bytes?.() ?? 0)
  const reason = store.failure?.()?.reason
  for (const known of storageReasons) failing.set({ reason: known }, Number(known === reason))
}

function readHub(gauges: Gauges, { core, sync, controllers, outbox, certificates }: Serving): void {
  const { phase, receivedMsAgo, connectionsLost } = sync.state()
  const health = core.health()
  gauges.orders.reset()
  for (const order of core.orders()) gauges.orders.inc({ phase: order.phase })
  gauges.unknown.set(core.unknownOperations().length)
  gauges.accepting.set(Number(health.accepting_orders))
  gauges.quiet.set(core.quietMs() / 1000)
  for (const stream of ['ledger', 'telemetry'] as const) {
    const { base, last } = outbox.position(stream)
    gauges.outbox.set({ stream }, last - base)
  }
  gauges.connected.set(Number(phase === 'welcomed'))
  gauges.lost.reset()
  gauges.lost.inc(connectionsLost ?? 0)
  // The cloud's silence is unknown before its first message.
  if (receivedMsAgo === null) gauges.heard.remove()
  else gauges.heard.set(receivedMsAgo / 1000)
  gauges.expiry.reset()
  for (const { name, endsAt } of certificates?.() ?? [])
    gauges.expiry.set({ certificate: name }, endsAt / 1000)
  for (const link of controllers.links()) gauges.up.set({ controller: link.controller }, Number(link.up))
  gauges.losses.reset()
  for (const [controller, count] of controllers.losses()) gauges.losses.inc({ controller }, count)
  gauges.warmth.reset()
  for (const { fridge_number: fridge, temperature } of health.fridges)
    if (temperature !== null) gauges.warmth.set({ fridge: String(fridge) }, temperature)
}
