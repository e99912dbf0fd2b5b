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

Starts a cloud, a hub and the simulator as separate processes. Honest customers buy while one abuser attacks. At the end the
test checks all books, and reports failures of honest customers, lost money, and written bytes. Exit status 1 if an invariant is
violated or money is lost.

  --who WHO     kind of abuser (default guest):
${Object.entries(abusers)
  .map(([name, { text }]) => `                  ${name.padEnd(10)} ${text}`)
  .join('\n')}
  --minutes M   duration in minutes (default 60)
  --seed S      seed of the random choices (default 1)
  --pace MS     pause between two honest customers in milliseconds (default 10000)
  --keep        keeps the folder with data and logs; it is also kept after a failure`

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
