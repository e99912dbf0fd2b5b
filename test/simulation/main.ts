import '../../protocol/require-node.ts'
import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { inspect, parseArgs } from 'node:util'
import { progressOn, progressText } from '../../protocol/model/progress.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { Coverage } from './coverage.ts'
import { expectedFaults } from './blows.ts'
import { dropTemplate } from './database-server.ts'
import { runDays } from './days.ts'
import { runSeed } from './run-seed.ts'

const HELP = `npm run swarm -- [--seeds N] [--from S] [--jobs J] [--keep-going] [--quiet] [--postgres URL]
npm run swarm -- --days N [--seed S] [--hubs H] [--orders O]

Runs two hubs, two cloud processes, simulators, network and clocks under one seeded scheduler, with faults and crashes. Each
seed from S to S+N-1 is one run, and the invariants are checked at its end. Exit status 1 if an invariant is violated.

  --seeds N      number of seeds (default 200)
  --from S       the first seed (default 1)
  --jobs J       number of processes that share the seeds (default: one for each processor)
  --keep-going   continues after a failing seed
  --quiet        does not print how often each fault and each crash point occurred
  --postgres URL server of the cloud's database, in place of memory. The server's own scheduling has no seed, so a
                 repeated seed may differ

--days plays days of a fleet with a daily pattern of sales. Hubs are enrolled, renew their certificates, and get two good releases
and a bad one. One board is stolen and replaced, two cards age, and the faults of the other seeds strike every two hours. A
technician visits each hub every three days. Each day is a line of a table; the sums and the violated rules follow. MB/hub is
written to the journal of a hub, in a file system in memory.

  --days N       number of days (30 days of 20 hubs take about 7 minutes of processor time)
  --seed S       the seed (default 1)
  --hubs H       number of hubs (default 20)
  --orders O     orders of a hub a day (default 3)`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    'keep-going': { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
    postgres: { type: 'string' },
    days: { type: 'string' },
    seed: { type: 'string', default: '1' },
    hubs: { type: 'string', default: '20' },
    orders: { type: 'string', default: '3' },
    help: { type: 'boolean', default: false },
  },
})

/** A seed that runs this long does not end, which is a defect as well. */
const HUNG_AFTER_S = 600

/** A worker's report of one seed. */
interface Report {
  seed: number
  problems: string[]
  counts: [string, number][]
}

if (values.help) console.log(HELP)
else if (values.days !== undefined) process.exitCode = await days(whole('days'))
else if (process.send) {
  process.on('message', (seed: number) => void play(seed))
  const { postgres } = values
  if (postgres !== undefined) process.on('disconnect', () => void dropTemplate(postgres))
} else process.exitCode = await swarm(whole('seeds'), whole('from'), Math.max(1, whole('jobs')))

function whole(name: 'seeds' | 'from' | 'jobs' | 'days' | 'seed' | 'hubs' | 'orders'): number {
  if (!/^\d{1,9}$/.test(values[name] ?? ''))
    throw new Error(`--${name} takes a whole number, not ${values[name]}`)
  return Number(values[name])
}

async function days(count: number): Promise<number> {
  const { clock } = systemRuntime()
  const startedAt = clock.monotonic()
  const [seed, hubs, ordersPerDay] = [whole('seed'), whole('hubs'), whole('orders')]
  console.log(`${count} days of ${hubs} hubs, about ${ordersPerDay} orders of each hub a day, seed ${seed}`)
  const problems = await runDays({ days: count, seed, hubs, ordersPerDay, print: console.log })
  for (const problem of problems) console.log(`  ${problem}`)
  const minutes = ((clock.monotonic() - startedAt) / 60_000).toFixed(1)
  const verdict = problems.length === 0 ? 'every rule held' : `${problems.length} rules were violated`
  console.log(`${count} days in ${minutes} minutes: ${verdict}`)
  return problems.length === 0 ? 0 : 1
}

async function play(seed: number): Promise<void> {
  const { violations, failure, coverage } = await runSeed(seed, { postgresUrl: values.postgres })
  const problems = violations.map(({ invariant, text }) => `${invariant}: ${text}`)
  if (failure !== undefined) problems.push(`defect: ${inspect(failure)}`)
  process.send!({ seed, problems, counts: [...coverage.counts] } satisfies Report)
}

async function swarm(seeds: number, from: number, jobs: number): Promise<number> {
  const coverage = new Coverage()
  const { clock } = systemRuntime()
  const startedAt = clock.monotonic()
  const progress = progressOn(process.stderr, clock)
  let next = from
  let done = 0
  let failed = 0
  const end = from + seeds
  await Promise.all(
    Array.from({ length: Math.min(jobs, seeds) }, () => {
      const worker = fork(import.meta.filename, process.argv.slice(2))
      return new Promise<void>((resolve, reject) => {
        let watch: NodeJS.Timeout | undefined
        const proceed = (): void => {
          if (next >= end) return worker.disconnect()
          const seed = next++
          worker.send(seed)
          watch = setTimeout(() => {
            progress.clear()
            console.log(`seed ${seed} has not ended after ${HUNG_AFTER_S} s`)
            worker.kill('SIGKILL')
          }, HUNG_AFTER_S * 1000)
        }
        worker.on('message', (report: Report) => {
          clearTimeout(watch)
          done++
          for (const [name, count] of report.counts) coverage.hit(name, count)
          if (report.problems.length > 0) {
            failed++
            progress.clear()
            console.log(`seed ${report.seed} failed (npm run swarm -- --seeds 1 --from ${report.seed})`)
            for (const problem of report.problems) console.log(`  ${problem}`)
            if (!values['keep-going']) next = end
          }
          progress.show(progressText(done, seeds, 'seeds', clock.monotonic() - startedAt))
          proceed()
        })
        worker.on('error', reject)
        worker.on('exit', (status) =>
          status === 0 ? resolve() : reject(new Error(`a worker ended with ${status}`)),
        )
        proceed()
      })
    }),
  )
  const seconds = (clock.monotonic() - startedAt) / 1000
  progress.clear()
  if (!values.quiet) summarize(coverage)
  console.log(`${done} seeds, ${failed} failed, ${(done / seconds).toFixed(2)} seeds per second`)
  return failed === 0 ? 0 : 1
}

function summarize(coverage: Coverage): void {
  for (const [title, prefix] of [
    ['faults', 'fault '],
    ['crashes by checkpoint', 'crash '],
    ['orders ended', 'order ended '],
    ['motions', 'motion '],
    ['refunds', 'refund '],
    ['redemptions', 'redemption '],
    ['commands', 'command '],
    ['customers', 'customer '],
    ['boards', 'board '],
    ['rollouts', 'rollout '],
    ['controllers at the end', 'firmware '],
  ] as const)
    console.log(`${title}\n${coverage.lines(prefix).join('\n')}`)
  const missed = [
    ...expectedFaults.filter((name) => !coverage.counts.has(name)),
    ...[...coverage.counts.keys()]
      .filter((name) => name.startsWith('passed '))
      .map((name) => name.replace('passed ', 'crash '))
      .filter((name) => !coverage.counts.has(name)),
  ]
  console.log(
    missed.length === 0 ? 'every fault and every crash point was met' : `not met: ${missed.join(', ')}`,
  )
}
