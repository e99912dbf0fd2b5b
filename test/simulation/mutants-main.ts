import '../../protocol/require-node.ts'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
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
  for (const mutant of mutants.filter(({ name }) => name.includes(values.only))) {
    const range = { count: Number(values.seeds), from: Number(values.from) }
    const { seed, output } = await runMutant(root, mutant, range)
    if (seed === undefined) process.exitCode = 1
    const said = output.split('\n').filter((line) => /^ {2}(I\d|defect)/.test(line))
    console.log(`${mutant.name}: ${seed === undefined ? 'unnoticed' : `red at seed ${seed}`}`)
    console.log(seed === undefined ? output : said.slice(0, 4).join('\n'))
  }
}
