import '../../../protocol/require-node.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../../protocol/model/progress.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { abusers, runAbuse, type Abuser } from './run-abuse.ts'
import { reportOf } from './report.ts'

const HELP = `npm run abuse -- [--who WHO] [--minutes M] [--seed S] [--pace MS]

Starts a cloud, a hub and the simulator of its controllers as processes of their own. Honest customers buy there while one
abuser does what he can. At the end all books are checked, and the report says what the honest customers met, what was lost,
and what was written. Exit status 1 if an invariant is violated or money is lost.

  --who WHO     who abuses (default guest):
${Object.entries(abusers)
  .map(([name, { text }]) => `                  ${name.padEnd(10)} ${text}`)
  .join('\n')}
  --minutes M   how long (default 60)
  --seed S      of all chance (default 1)
  --pace MS     pause between two honest customers (default 10000)
  --keep        keeps the folder of data and logs; it is kept if something is wrong`

const { values } = parseArgs({
  options: {
    who: { type: 'string', default: 'guest' },
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    pace: { type: 'string', default: '10000' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(HELP)
else process.exitCode = await abuse()

function number(name: 'minutes' | 'seed' | 'pace', pattern: RegExp): number {
  if (!pattern.test(values[name])) throw new Error(`--${name} takes a number, not ${values[name]}`)
  return Number(values[name])
}

async function abuse(): Promise<number> {
  const { who } = values
  if (!Object.hasOwn(abusers, who))
    throw new Error(`--who takes ${Object.keys(abusers).join(', ')}, not ${who}`)
  const minutes = number('minutes', /^\d{1,4}(\.\d+)?$/)
  const runtime = systemRuntime()
  const folder = mkdtempSync(join(tmpdir(), 'larder-abuse-'))
  const progress = progressOn(process.stderr, runtime.clock)
  let isFine = false
  try {
    const outcome = await runAbuse({
      runtime,
      folder,
      who: who as Abuser,
      seed: number('seed', /^\d{1,9}$/),
      minutes,
      paceMs: number('pace', /^\d{1,9}$/),
      onProgress: (text) => progress.show(text),
    })
    progress.clear()
    console.log(reportOf(outcome, minutes))
    isFine = outcome.violations.length === 0 && outcome.lost === 0
  } finally {
    progress.clear()
    if (isFine && !values.keep) rmSync(folder, { recursive: true, force: true })
    else console.log(`data and logs are in ${folder}`)
  }
  return isFine ? 0 : 1
}
