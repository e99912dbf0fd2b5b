import { arch, hostname, release, uptime } from 'node:os'
import { PRODUCT_VERSION } from '../../protocol/build.ts'
import type { Shown } from '../../protocol/model/program-settings.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import type { StorageFault } from '../../protocol/model/storage.ts'
import { tarOf } from '../../protocol/model/tar.ts'
import { MAX_RECORDS } from '../../protocol/mqtt/diagnosis.ts'
import type { Recent } from '../recent.ts'
import type { Serving } from '../serving.ts'
import type { LogLines } from './log-lines.ts'

/** The newest serial lines in the archive. */
const WIRE_LINES = 500

export interface BundleParts {
  clock: Clock
  settings: Shown
  lines: Pick<LogLines, 'read'>
  recent: () => Recent
  /** The hub, or its stand-in. */
  hub: () => Serving
  fault: () => StorageFault | undefined
  /** The report of `larder doctor`, as JSON. */
  doctor: () => Promise<string>
  /** Removes the secrets of the hub from a text. */
  redact: (text: string) => string
}

/** The diagnostic archive of the hub: a `tar` with a file for each subject, without secrets. */
export async function makeBundle(parts: BundleParts): Promise<Buffer> {
  const { clock, settings, lines, recent, redact } = parts
  const doctor = await parts.doctor().catch((error: unknown) => JSON.stringify({ error: String(error) }))
  const { wire } = recent()
  const contents: Record<string, string> = {
    'versions.json': pretty(versions()),
    'doctor.json': doctor,
    'crashes.json': pretty(parts.hub().core.life?.() ?? null),
    'settings.json': pretty(settings),
    'journal.json': pretty(journalOf(parts)),
    'wire.json': pretty(wireOf(parts)),
    'wire.jsonl': wire.slice(-WIRE_LINES).map(lineOf).join('\n'),
    'log.jsonl': lines.read({ sinceMs: Infinity, limit: MAX_RECORDS }).lines.join('\n'),
  }
  const safe = Object.fromEntries(Object.entries(contents).map(([name, text]) => [name, redact(text)]))
  return tarOf(safe, clock.now())
}

const lineOf = (line: object): string => JSON.stringify(line)
const pretty = (value: unknown): string => JSON.stringify(value, null, 2)

const versions = () => ({
  version: PRODUCT_VERSION,
  node: process.version,
  kernel: release(),
  arch: arch(),
  host: hostname(),
  board_uptime_s: Math.round(uptime()),
  service_uptime_s: Math.round(process.uptime()),
  memory_bytes: process.memoryUsage.rss(),
})

/** The hub's work, from memory: the journal may not be readable. */
function journalOf({ hub, fault }: BundleParts) {
  const { core, outbox } = hub()
  return {
    storage: fault() ?? null,
    outbox: { ledger: outbox.position('ledger'), telemetry: outbox.position('telemetry') },
    orders: core.orders(),
    unknown_operations: core.unknownOperations(),
    alarms: core.alarms(),
    held: core.held(),
    dead_letters: core.deadLetters().map(({ body: _body, ...letter }) => letter),
  }
}

/** The lines to the controllers and the connection to the cloud. */
function wireOf({ hub }: BundleParts) {
  const { sync, controllers } = hub()
  const losses = controllers.losses()
  return {
    cloud: sync.state(),
    controllers: controllers.links().map((link) => ({ ...link, losses: losses.get(link.controller) ?? 0 })),
    errors: controllers.errors?.() ?? 0,
  }
}

/**
 * A function that replaces the given secrets in a text, also in their form in JSON, and passwords in addresses.
 */
export function redactorOf(secrets: () => readonly (string | undefined)[]): (text: string) => string {
  return (text) => {
    const forms = secrets().flatMap((secret) => (secret ? [secret, JSON.stringify(secret).slice(1, -1)] : []))
    return forms
      .reduce((cleared, form) => cleared.replaceAll(form, '[removed]'), text)
      .replaceAll(/(\w:\/\/)[^/\s"@]*@/g, '$1')
  }
}
