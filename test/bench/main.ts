import '../../protocol/require-node.ts'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { benchConsole } from './console.ts'
import { benchCosts } from './costs.ts'
import { formatSection, type Section } from './figures.ts'
import { benchFleet } from './fleet.ts'
import { benchFootprint } from './footprint.ts'
import { benchFrame } from './frame.ts'
import { benchGrowth } from './growth.ts'
import { benchOwnerReports } from './owner-reports.ts'
import { benchProductList } from './product-list.ts'
import { progress } from './progress.ts'
import { benchReads } from './reads.ts'
import { reportOf } from './report.ts'
import { benchRoundTrip } from './round-trip.ts'
import { benchSearch } from './search.ts'
import { benchShares } from './shares.ts'
import { benchShop } from './shop.ts'
import { benchShopPage } from './shop-page.ts'

/** Options with whole numbers: default, and what `--help` prints. */
const numbers = {
  rounds: [10, 'rounds of the paired parts'],
  requests: [
    1000,
    'frame, reads, product-list, shop: requests of each kind per round; search: a tenth, reports: a hundredth',
  ],
  calls: [60, 'round-trip: calls of each kind per round'],
  orders: [100, 'footprint: orders'],
  'idle-seconds': [120, 'footprint: seconds without an order'],
  'past-orders': [1_000_000, 'shop, search, reports: orders of the larger hub'],
  hubs: [1000, 'fleet, shares, growth: hubs'],
  'beat-seconds': [60, 'fleet, shares, growth: seconds in which hubs only send heartbeats'],
  'console-hubs': [20, 'console: hubs on one page'],
  'console-seconds': [20, 'console: seconds at rest, and seconds under load'],
} as const satisfies Record<string, readonly [number, string]>
type NumberOption = keyof typeof numbers

const { values } = parseArgs({
  options: {
    ...(Object.fromEntries(Object.keys(numbers).map((name) => [name, { type: 'string' }])) as Record<
      NumberOption,
      { type: 'string' }
    >),
    only: { type: 'string' },
    route: { type: 'string', default: '' },
    folder: { type: 'string', default: tmpdir() },
    report: { type: 'string', default: join('.bench', 'report.html') },
    help: { type: 'boolean', default: false },
  },
})
const runtime = systemRuntime()

/** The parts in the order of a run, and what each one compares. */
const parts: Record<string, [compares: string, (folder: string) => Promise<Section>]> = {
  'round-trip': [
    'open_bin from the API to the controller, beside a bare MQTT and serial round trip',
    (folder) => benchRoundTrip({ runtime, folder, rounds: whole('rounds'), calls: whole('calls') }),
  ],
  footprint: [
    'memory and written bytes of a hub, per order and per idle hour',
    (folder) =>
      benchFootprint({ runtime, folder, orders: whole('orders'), idleSeconds: whole('idle-seconds') }),
  ],
  frame: ['one empty route, beside the same route in bare Hono', (folder) => benchFrame(paired(folder))],
  reads: [
    'inventory, order pages and one order, beside bare statements',
    (folder) => benchReads(paired(folder)),
  ],
  'product-list': [
    'a page of products: compressed and conditional, beside uncompressed',
    (folder) => benchProductList(paired(folder)),
  ],
  shop: [
    'purchases on SQLite and PostgreSQL beside the same commits in bare statements; few orders beside many',
    (folder) => benchShop({ ...paired(folder), few: 10_000, many: whole('past-orders') }),
  ],
  search: [
    'an owner’s search: few past orders, beside many',
    (folder) =>
      benchSearch({ ...paired(folder), requests: Math.ceil(whole('requests') / 10), sizes: sizes() }),
  ],
  reports: [
    'an owner’s reports on SQLite and PostgreSQL: few past orders, beside many; memory of an export',
    (folder) =>
      benchOwnerReports({ ...paired(folder), requests: Math.ceil(whole('requests') / 100), sizes: sizes() }),
  ],
  fleet: [
    'hubs that connect at once after kills of cloud and broker; the cost of a heartbeat',
    (folder) => benchFleet({ runtime, folder, hubs: whole('hubs'), idleSeconds: whole('beat-seconds') }),
  ],
  shares: [
    'three cloud processes that share a fleet: share of each, before and after a process starts or stops',
    (folder) => benchShares({ runtime, folder, hubs: whole('hubs'), idleSeconds: whole('beat-seconds') }),
  ],
  growth: [
    'the cost of a hub at an accelerated pace; the needs of 10,000, 100,000 and 1,000,000 hubs',
    (folder) => benchGrowth({ runtime, folder, hubs: whole('hubs'), seconds: whole('beat-seconds') }),
  ],
  console: [
    'memory, processor time and delay of a page with many hubs',
    (folder) =>
      benchConsole({ runtime, folder, hubs: whole('console-hubs'), seconds: whole('console-seconds') }),
  ],
  'shop-page': [
    'time until the shop is usable on a telephone, on a slow network and a slow processor, and its bytes',
    (folder) => benchShopPage({ runtime, folder, rounds: whole('rounds') }),
  ],
  costs: [
    'the most expensive request of each route; --route TEXT selects routes',
    (folder) => benchCosts({ runtime, folder, rounds: whole('rounds'), route: values.route }),
  ],
}

if (values.help) console.log(help())
else await run(chosenParts())

/** Past orders of the hubs, ascending. */
function sizes(): number[] {
  return [...new Set([10_000, 200_000, whole('past-orders')])].sort((a, b) => a - b)
}

function paired(folder: string) {
  return { runtime, folder, rounds: whole('rounds'), requests: whole('requests') }
}

function help(): string {
  const lines = (rows: readonly (readonly [string, string])[]): string =>
    rows.map(([name, text]) => `  ${name.padEnd(19)} ${text}`).join('\n')
  return `npm run bench -- [--only PART,PART] [options]

Measures Larder with its real programs, each figure beside its baseline from the same run, as minimum, median and
maximum. A run takes about twenty minutes on a machine that does nothing else.

Parts
${lines(Object.entries(parts).map(([name, [compares]]) => [name, compares]))}

Options
${lines([
  ['--only PART,PART', 'only these parts'],
  ...Object.entries(numbers).map(
    ([name, [usual, text]]) => [`--${name} N`, `${text} (default ${usual})`] as const,
  ),
  ['--route TEXT', 'costs: only routes with this text in method and path'],
  ['--folder PATH', 'folder on the measured disk (default: the temporary folder of the system)'],
  ['--report PATH', 'page with all drawings (default .bench/report.html)'],
])}

BENCH_PROFILE=FOLDER  processor profiles of frame, reads, shop, fleet and round-trip; they slow the programs`
}

/** The parts that `--only` names, in the order of the table; all of them without it. */
function chosenParts(): readonly string[] {
  const all = Object.keys(parts)
  if (values.only === undefined) return all
  const names = values.only.split(',').map((name) => name.trim())
  const unknown = names.filter((name) => !all.includes(name))
  if (unknown.length > 0)
    throw new Error(`--only: no part ${unknown.join(', ')}; there are ${all.join(', ')}`)
  return all.filter((part) => names.includes(part))
}

function whole(name: NumberOption): number {
  const given = values[name] ?? String(numbers[name][0])
  if (!/^[1-9]\d{0,7}$/.test(given)) throw new Error(`--${name} takes a whole number, not ${given}`)
  return Number(given)
}

async function run(chosen: readonly string[]): Promise<void> {
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
      const section = await parts[part]![1](folder)
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
