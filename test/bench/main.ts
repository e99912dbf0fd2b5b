import '../../protocol/require-node.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { benchAnalytics } from './analytics.ts'
import { formatSection, type Section } from './figures.ts'
import { benchFootprint } from './footprint.ts'
import { benchReads } from './reads.ts'
import { benchRoundTrip } from './round-trip.ts'
import { benchShop } from './shop.ts'
import { streamSection } from './stream-section.ts'

const HELP = `npm run bench -- [--only round-trip|stream|footprint|analytics|reads|shop] [options]

Measures Larder with its real programs, each figure beside its baseline from the same run, as least, middle and greatest
value. It takes about fifteen minutes, and tells the truth on a machine that does nothing else.

  --only PART         one part alone
  --rounds N          round-trip, analytics, reads, shop: how many rounds (default 10)
  --calls N           round-trip: calls of either kind in a round (default 60)
  --runs N            stream: how often (default 3)
  --entries N         stream: entries collected offline (default 100000)
  --orders N          footprint: how many orders (default 100)
  --idle-seconds N    footprint: how long the idle hub is watched (default 120)
  --past-orders N     analytics, shop: orders of the larger hub (default 1000000)
  --requests N        reads, shop: requests of a kind in a round, to either side (default 1000)
  --folder PATH       a folder on the disk to measure (default: the system's temporary one)

BENCH_PROFILE=FOLDER  reads, shop: writes the cloud's processor profiles there (they slow it)`

const parts = ['round-trip', 'stream', 'footprint', 'analytics', 'reads', 'shop'] as const
type Part = (typeof parts)[number]

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '10' },
    calls: { type: 'string', default: '60' },
    runs: { type: 'string', default: '3' },
    entries: { type: 'string', default: '100000' },
    orders: { type: 'string', default: '100' },
    'idle-seconds': { type: 'string', default: '120' },
    'past-orders': { type: 'string', default: '1000000' },
    requests: { type: 'string', default: '1000' },
    folder: { type: 'string', default: tmpdir() },
    help: { type: 'boolean', default: false },
  },
})
const runtime = systemRuntime()

const bench: Record<Part, (folder: string) => Promise<Section>> = {
  'round-trip': (folder) =>
    benchRoundTrip({ runtime, folder, rounds: whole('rounds'), calls: whole('calls') }),
  stream: (folder) => streamSection({ folder, runs: whole('runs'), entries: whole('entries') }),
  footprint: (folder) =>
    benchFootprint({ runtime, folder, orders: whole('orders'), idleSeconds: whole('idle-seconds') }),
  analytics: (folder) =>
    benchAnalytics({ runtime, folder, few: 10_000, many: whole('past-orders'), rounds: whole('rounds') }),
  reads: (folder) => benchReads({ runtime, folder, rounds: whole('rounds'), requests: whole('requests') }),
  shop: (folder) =>
    benchShop({
      runtime,
      folder,
      rounds: whole('rounds'),
      requests: whole('requests'),
      few: 10_000,
      many: whole('past-orders'),
    }),
}

if (values.help) console.log(HELP)
else await run(parts.filter((part) => values.only === undefined || values.only === part))

function whole(
  name: 'rounds' | 'calls' | 'runs' | 'entries' | 'orders' | 'idle-seconds' | 'past-orders' | 'requests',
): number {
  if (!/^[1-9]\d{0,7}$/.test(values[name]))
    throw new Error(`--${name} takes a whole number, not ${values[name]}`)
  return Number(values[name])
}

async function run(chosen: readonly Part[]): Promise<void> {
  if (chosen.length === 0) throw new Error(`--only takes one of ${parts.join(', ')}`)
  const model = cpus()[0]?.model ?? 'unknown processor'
  const memory = `${Math.round(totalmem() / 1e9)} GB`
  console.log(`${cpus().length} × ${model}, ${memory}, Node ${process.version}; ${load()}\n`)
  for (const part of chosen) {
    const folder = mkdtempSync(join(values.folder, 'larder-bench-'))
    try {
      console.log(formatSection(await bench[part](folder)))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  console.log(load())
}

/** Other programs' part in the figures. */
function load(): string {
  return `load ${loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')}`
}
