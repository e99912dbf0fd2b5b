import { statfs } from 'node:fs/promises'
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import { PRODUCT_VERSION } from '../protocol/build.ts'
import { storageReasons } from '../protocol/model/storage.ts'
import type { Store } from './journal/store.ts'
import type { Serving } from './serving.ts'

export interface HubMetricsOptions {
  hubId: number
  hub: Serving
  store: Pick<Store, 'commits' | 'isFull'> & Partial<Pick<Store, 'failure' | 'bytes'>>
  /** The folder of the journal. */
  folder?: string
}

/** Gauges of Node's that end in `_total`, which is for counters. */
const MISNAMED = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
]

/** What the hub is measured by, in Prometheus' text; names follow its conventions. */
export function createHubMetrics({
  hubId,
  hub,
  store,
  folder,
}: HubMetricsOptions): () => Promise<{ type: string; text: string }> {
  const register = new Registry()
  register.setDefaultLabels({ hub: String(hubId) })
  const registers = [register]
  collectDefaultMetrics({ register })
  for (const name of MISNAMED) register.removeSingleMetric(name)
  const gauge = <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Gauge({ name, help, labelNames, registers })
  const counter = <const L extends string>(name: string, help: string, ...labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers })
  gauge('larder_build_info', 'Always 1; its label says what runs.', 'version').set(
    { version: PRODUCT_VERSION },
    1,
  )
  const orders = gauge('larder_hub_orders', 'Orders that are at the hub, by what it does with them.', 'phase')
  const unknown = gauge(
    'larder_hub_unknown_operations',
    'Motions of which nobody knows whether they happened.',
  )
  const accepting = gauge('larder_hub_accepting_orders', 'Whether the hub takes orders.')
  const outbox = gauge(
    'larder_hub_outbox_entries',
    'Entries that the cloud has not acknowledged, by stream.',
    'stream',
  )
  const commits = counter(
    'larder_hub_journal_commits_total',
    'Transactions committed to the journal, each to the disk.',
  )
  const full = gauge('larder_hub_journal_full', 'Whether the disk is full, so that the hub stops selling.')
  const bytes = gauge(
    'larder_hub_journal_bytes',
    'Size of the journal and its log. STORE_MAX_MB is the limit.',
  )
  const failing = gauge(
    'larder_hub_storage_failed',
    'Whether the hub cannot use the storage of its journal, by the reason.',
    'reason',
  )
  const free = gauge('larder_disk_free_bytes', "Free space on the disk of the hub's journal.")
  const connected = gauge('larder_hub_cloud_connected', 'Whether the cloud has welcomed the hub.')
  const lost = counter(
    'larder_hub_cloud_connections_lost_total',
    'Connections to the broker that ended or failed since the start.',
  )
  const heard = gauge('larder_hub_cloud_silence_seconds', 'How long the cloud has been silent.')
  const quiet = gauge('larder_hub_core_quiet_seconds', 'How long ago the hub handled an event.')
  const up = gauge('larder_hub_link_up', "Whether a controller's line is up.", 'controller')
  const losses = counter(
    'larder_hub_link_losses_total',
    "How often a controller's line was lost.",
    'controller',
  )
  const expiry = gauge(
    'larder_certificate_expiry_timestamp_seconds',
    'When a certificate ends, in seconds since the Unix epoch.',
    'certificate',
  )
  const warmth = gauge(
    'larder_hub_fridge_temperature_celsius',
    'How warm a fridge is; absent while it is not known.',
    'fridge',
  )

  return async () => {
    const { core, sync, controllers } = hub
    const { phase, heardMsAgo, connectionsLost } = sync.state()
    orders.reset()
    for (const order of core.orders()) orders.inc({ phase: order.phase })
    unknown.set(core.unknownOperations().length)
    const health = core.health()
    accepting.set(Number(health.accepting_orders))
    for (const stream of ['ledger', 'telemetry'] as const) {
      const { base, last } = hub.outbox.position(stream)
      outbox.set({ stream }, last - base)
    }
    commits.reset()
    commits.inc(store.commits())
    full.set(Number(store.isFull()))
    bytes.set(store.bytes?.() ?? 0)
    const reason = store.failure?.()?.reason
    for (const known of storageReasons) failing.set({ reason: known }, Number(known === reason))
    const disk = folder === undefined ? undefined : await statfs(folder).catch(() => undefined)
    if (disk) free.set(disk.bavail * disk.bsize)
    connected.set(Number(phase === 'welcomed'))
    lost.reset()
    lost.inc(connectionsLost ?? 0)
    expiry.reset()
    for (const { name, endsAt } of hub.certificates?.() ?? [])
      expiry.set({ certificate: name }, endsAt / 1000)
    // A cloud that was never heard has been silent for as long as anybody can tell.
    if (heardMsAgo === null) heard.remove()
    else heard.set(heardMsAgo / 1000)
    quiet.set(core.quietMs() / 1000)
    for (const link of controllers.links()) up.set({ controller: link.controller }, Number(link.up))
    losses.reset()
    for (const [controller, count] of controllers.losses()) losses.inc({ controller }, count)
    warmth.reset()
    for (const { fridge_number: fridge, temperature } of health.fridges)
      if (temperature !== null) warmth.set({ fridge: String(fridge) }, temperature)
    return { type: register.contentType, text: await register.metrics() }
  }
}
