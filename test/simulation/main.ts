import { parseArgs } from 'node:util'
import { Coverage } from './coverage.ts'
import { expectedFaults } from './fault-plan.ts'
import { runSeed, type SeedOutcome } from './run-seed.ts'

const HELP = `npm run swarm -- [--seeds N] [--from S] [--keep-going] [--mutants]

Runs hub, cloud, simulator, network and clocks under one seeded scheduler, once for each seed S … S+N-1, with faults and
crashes everywhere, and checks the invariants at the end of each. Exit status 1 where one was violated.

  --seeds N      how many seeds (default 200)
  --from S       the first seed (default 1)
  --keep-going   do not stop at the first failing seed
  --quiet        do not print the coverage`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '200' },
    from: { type: 'string', default: '1' },
    'keep-going': { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(HELP)
else process.exitCode = await swarm(whole('seeds', values.seeds), whole('from', values.from))

function whole(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} takes a whole number, not ${text}`)
  return Number(text)
}

async function swarm(seeds: number, from: number): Promise<number> {
  const coverage = new Coverage()
  const began = process.hrtime.bigint()
  let failed = 0
  let done = 0
  for (let seed = from; seed < from + seeds; seed++) {
    const outcome = await runSeed(seed)
    coverage.merge(outcome.coverage)
    done++
    if (outcome.failure === undefined && outcome.violations.length === 0) continue
    failed++
    print(outcome)
    if (!values['keep-going']) break
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  if (!values.quiet) report(coverage)
  console.log(`${done} seeds, ${failed} failed, ${(done / seconds).toFixed(2)} seeds per second`)
  return failed === 0 ? 0 : 1
}

function print({ seed, violations, failure }: SeedOutcome): void {
  console.log(`seed ${seed} failed (npm run swarm -- --seeds 1 --from ${seed})`)
  for (const { invariant, text } of violations) console.log(`  ${invariant}: ${text}`)
  if (failure !== undefined) console.log('  defect:', failure)
}

function report(coverage: Coverage): void {
  for (const [title, prefix] of [
    ['faults', 'fault '],
    ['crashes by checkpoint', 'crash '],
    ['orders ended', 'order ended '],
    ['motions', 'motion '],
    ['refunds', 'refund '],
    ['commands', 'command '],
    ['customers', 'customer '],
    ['others', 'hub '],
  ] as const)
    console.log(`${title}\n${coverage.lines(prefix).join('\n')}`)
  const missed = [
    ...expectedFaults.filter((name) => !coverage.counts.has(name)),
    ...[...coverage.counts.keys()]
      .filter((name) => name.startsWith('passed '))
      .map((name) => name.replace('passed ', 'crash '))
      .filter((name) => !coverage.counts.has(name)),
  ]
  console.log(missed.length === 0 ? 'everything was met' : `not met: ${missed.join(', ')}`)
}
