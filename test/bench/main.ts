import '../../protocol/require-node.ts'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { benchAnalytics } from './analytics.ts'
import { benchConsole } from './console.ts'
import { benchEvents } from './events.ts'
import { formatSection, type Section } from './figures.ts'
import { benchFleet } from './fleet.ts'
import { benchFrame } from './frame.ts'
import { benchFootprint } from './footprint.ts'
import { progress } from './progress.ts'
import { reportOf } from './report.ts'
import { benchOutages } from './outages.ts'
import { benchProductList } from './product-list.ts'
import { benchReads } from './reads.ts'
import { benchRoundTrip } from './round-trip.ts'
import { benchCosts } from './costs.ts'
import { benchDeals } from './deals.ts'
import { benchSearch } from './search.ts'
import { benchShop } from './shop.ts'
import { benchShares } from './shares.ts'
import { benchSlowConnections } from './slow-connections.ts'
import { streamSection } from './stream-section.ts'

const HELP = `npm run bench -- [--only PART,PART] [options]

Measures Larder with its real programs, each figure beside its baseline from the same run, as least, middle and greatest
value. It takes about twenty minutes, and tells the truth on a machine that does nothing else.

  --only PART,PART    only these parts: round-trip, stream, footprint, analytics, frame, reads, product-list, shop, deals,
                      search, events, slow-connections, fleet, shares, outages, console, costs
  --rounds N          round-trip, analytics, frame, reads, product-list, shop, deals, search, events: how many rounds (default 10)
  --calls N           round-trip: calls of either kind in a round (default 60)
  --runs N            stream: how often (default 3)
  --entries N         stream: entries collected offline (default 100000)
  --orders N          footprint: how many orders (default 100)
  --idle-seconds N    footprint: how long the idle hub is watched (default 120)
  --past-orders N     analytics, shop, search: orders of the larger hub (default 1000000)
  --requests N        frame, reads, product-list, shop, deals, search: requests of a kind in a round, to either side (default 1000; of searches a tenth)
  --readers N         events: readers of the live stream (default 1000)
  --slow N            slow-connections: how many (default 400)
  --slow-seconds N    slow-connections: for how long (default 60)
  --hubs N            fleet, shares: how many hubs (default 1000)
  --beat-seconds N    fleet, shares: how long it is watched while hubs only beat (default 60)
  --tenth-of-a-core   fleet: the same once more with the cloud held to that (Linux control groups, as root)
  --console-hubs N    console: how many hubs on one page (default 20)
  --console-seconds N console: how long it is watched, at rest and busy (default 20)
  --route TEXT        costs: only routes whose method and path contain this
  --folder PATH       a folder on the disk to measure (default: the system's temporary one)
  --report PATH       where all of it is drawn, as one page (default: .bench/report.html)

BENCH_PROFILE=FOLDER  frame, reads, shop, fleet: writes the cloud's processor profiles there (they slow it); round-trip: the hub's too`

const parts = [
  'round-trip',
  'stream',
  'footprint',
  'analytics',
  'frame',
  'reads',
  'product-list',
  'shop',
  'deals',
  'search',
  'events',
  'slow-connections',
  'fleet',
  'shares',
  'outages',
  'console',
  'costs',
] as const
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
    readers: { type: 'string', default: '1000' },
    slow: { type: 'string', default: '400' },
    'slow-seconds': { type: 'string', default: '60' },
    hubs: { type: 'string', default: '1000' },
    'beat-seconds': { type: 'string', default: '60' },
    'tenth-of-a-core': { type: 'boolean', default: false },
    'console-hubs': { type: 'string', default: '20' },
    'console-seconds': { type: 'string', default: '20' },
    route: { type: 'string', default: '' },
    folder: { type: 'string', default: tmpdir() },
    report: { type: 'string', default: join('.bench', 'report.html') },
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
  frame: (folder) => benchFrame({ runtime, folder, rounds: whole('rounds'), requests: whole('requests') }),
  reads: (folder) => benchReads({ runtime, folder, rounds: whole('rounds'), requests: whole('requests') }),
  'product-list': (folder) =>
    benchProductList({ runtime, folder, rounds: whole('rounds'), requests: whole('requests') }),
  shop: (folder) =>
    benchShop({
      runtime,
      folder,
      rounds: whole('rounds'),
      requests: whole('requests'),
      few: 10_000,
      many: whole('past-orders'),
    }),
  deals: (folder) =>
    benchDeals({
      runtime,
      folder,
      rounds: whole('rounds'),
      requests: Math.ceil(whole('requests') / 2),
      sizes: [1, 100, 1000],
    }),
  search: (folder) =>
    benchSearch({
      runtime,
      folder,
      rounds: whole('rounds'),
      requests: Math.ceil(whole('requests') / 10),
      sizes: [...new Set([10_000, 200_000, whole('past-orders')])].sort((a, b) => a - b),
    }),
  events: (folder) => benchEvents({ runtime, folder, rounds: whole('rounds'), readers: whole('readers') }),
  'slow-connections': (folder) =>
    benchSlowConnections({
      runtime,
      folder,
      each: Math.ceil(whole('slow') / 4),
      seconds: whole('slow-seconds'),
    }),
  fleet: (folder) =>
    benchFleet({
      runtime,
      folder,
      hubs: whole('hubs'),
      idleSeconds: whole('beat-seconds'),
      isHeld: values['tenth-of-a-core'],
    }),
  shares: (folder) =>
    benchShares({ runtime, folder, hubs: whole('hubs'), idleSeconds: whole('beat-seconds') }),
  outages: (folder) => benchOutages({ runtime, folder }),
  console: (folder) =>
    benchConsole({ runtime, folder, hubs: whole('console-hubs'), seconds: whole('console-seconds') }),
  costs: (folder) => benchCosts({ runtime, folder, rounds: whole('rounds'), route: values.route }),
}

if (values.help) console.log(HELP)
else await run(chosenParts())

/** The parts that `--only` names, in the order of the list; all of them without it. */
function chosenParts(): readonly Part[] {
  if (values.only === undefined) return parts
  const names = values.only.split(',').map((name) => name.trim())
  const unknown = names.filter((name) => !parts.some((part) => part === name))
  if (unknown.length > 0)
    throw new Error(`--only: no part ${unknown.join(', ')}; there are ${parts.join(', ')}`)
  return parts.filter((part) => names.includes(part))
}

function whole(
  name:
    | 'rounds'
    | 'calls'
    | 'runs'
    | 'entries'
    | 'orders'
    | 'idle-seconds'
    | 'past-orders'
    | 'requests'
    | 'readers'
    | 'slow'
    | 'slow-seconds'
    | 'hubs'
    | 'beat-seconds'
    | 'console-hubs'
    | 'console-seconds',
): number {
  if (!/^[1-9]\d{0,7}$/.test(values[name]))
    throw new Error(`--${name} takes a whole number, not ${values[name]}`)
  return Number(values[name])
}

async function run(chosen: readonly Part[]): Promise<void> {
  const model = cpus()[0]?.model ?? 'unknown processor'
  const memory = `${Math.round(totalmem() / 1e9)} GB`
  const machine = `${cpus().length} × ${model}, ${memory}, Node ${process.version}`
  const before = load()
  console.log(`${machine}; ${before}\n`)
  const sections: Section[] = []
  for (const [index, part] of chosen.entries()) {
    const folder = mkdtempSync(join(values.folder, 'larder-bench-'))
    progress.show(`${part}, ${index + 1} of ${chosen.length}`)
    try {
      const section = await bench[part](folder)
      sections.push(section)
      progress.clear()
      console.log(formatSection(section))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  console.log(load())
  mkdirSync(dirname(values.report), { recursive: true })
  writeFileSync(values.report, reportOf(sections, [machine, `before: ${before}; after: ${load()}`]))
  console.log(`drawn in ${values.report}`)
}

/** Load of other programs during the measurement. */
function load(): string {
  return `load ${loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')}`
}
