import '../../protocol/require-node.ts'
import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../protocol/model/progress.ts'
import { every } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { knownSeeds, mutants } from './mutant-list.ts'
import { compiledCopy, knownFirst, runMutant, SEEDS } from './mutants.ts'

const HELP = `npm run mutants -- [--only TEXT] [--seeds N] [--from S] [--jobs J]

Removes one safeguard at a time in a copy of the source, and runs the swarm until a seed detects it: first the known seed,
then seeds 1 to 500, or S to S+N-1. Exit status 1 if a removal is not detected.

  --only TEXT    safeguards with this text in their invariant or name (default: all)
  --seeds N      number of seeds (default 500)
  --from S       the first seed (default 1)
  --jobs J       number of processes that share the seeds (default: one for each processor)`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    from: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    only: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(HELP)
else {
  const original = await compiledCopy(join(import.meta.dirname, '../../..'))
  const { clock } = systemRuntime()
  const progress = progressOn(process.stderr, clock)
  const chosen = mutants.filter(({ invariant, name }) => `${invariant} ${name}`.includes(values.only))
  let current = ''
  const stopShowing = every(clock, 1000, () => progress.show(current))
  for (const [index, mutant] of chosen.entries()) {
    current = `${index + 1} of ${chosen.length} mutants: ${mutant.name}`
    const jobs = Number(values.jobs)
    const { seeds = SEEDS, from = 1 } = values
    const ranges =
      values.seeds === undefined && values.from === undefined
        ? knownFirst(knownSeeds[mutant.name]!, jobs)
        : [{ seeds: Number(seeds), from: Number(from), jobs }]
    const { seed, output } = await runMutant(original, mutant, ranges)
    if (seed === undefined) process.exitCode = 1
    const said = output.split('\n').filter((line) => /^ {2}(I\d|defect)/.test(line))
    progress.clear()
    console.log(
      `${mutant.invariant} ${mutant.name}: ${seed === undefined ? 'unnoticed' : `red at seed ${seed}`}`,
    )
    console.log(seed === undefined ? output : said.slice(0, 4).join('\n'))
  }
  stopShowing()
  progress.clear()
  await rm(original.folder, { recursive: true, force: true })
}
