import '../../protocol/require-node.ts'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../protocol/model/progress.ts'
import { every } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { mutants } from './mutant-list.ts'
import { runMutant } from './mutants.ts'

const HELP = `npm run mutants -- [--seeds N] [--from S] [--only TEXT]

Takes one safeguard after the other away, in a copy of the source, and runs the swarm over it until a seed notices.
Exit status 1 where one goes unnoticed.`

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(HELP)
else {
  const root = join(import.meta.dirname, '../../..')
  const { clock } = systemRuntime()
  const progress = progressOn(process.stderr, clock)
  const chosen = mutants.filter(({ name }) => name.includes(values.only))
  let current = ''
  const stopShowing = every(clock, 1000, () => progress.show(current))
  for (const [index, mutant] of chosen.entries()) {
    current = `${index + 1} of ${chosen.length} mutants: ${mutant.name}`
    const range = { count: Number(values.seeds), from: Number(values.from) }
    const { seed, output } = await runMutant(root, mutant, range)
    if (seed === undefined) process.exitCode = 1
    const said = output.split('\n').filter((line) => /^ {2}(I\d|defect)/.test(line))
    progress.clear()
    console.log(`${mutant.name}: ${seed === undefined ? 'unnoticed' : `red at seed ${seed}`}`)
    console.log(seed === undefined ? output : said.slice(0, 4).join('\n'))
  }
  stopShowing()
  progress.clear()
}
