import '../../../protocol/require-node.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../../protocol/model/progress.ts'
import { every } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { allFaults, faultKinds, type FaultKind } from './faults.ts'
import { freePorts } from '../../support/ports.ts'
import { createPostgresDatabase, startPostgres } from './postgres.ts'
import { reportOf } from './report.ts'
import { runChaos } from './run-chaos.ts'

const FAULTS = allFaults
  .map((kind) => `                 ${kind.padEnd(12)} ${faultKinds[kind].text}`)
  .join('\n')

const HELP = `npm run chaos -- [--kills N] [--seed S] [--shoppers P] [--faults LIST] [--bare]

Lets people buy from the real programs, as processes of their own, and kills those with SIGKILL at random: two cloud
processes on PostgreSQL, Mosquitto, the hub's service, the simulator of its controllers. The line between hub and broker
is cut, held up and slowed down besides, and now and then something else goes wrong. At the end everything is checked. Exit status 1 where an invariant is violated.

  --kills N      how often something is killed (default 50)
  --seed S       of all chance (default 1); when a process gets to run is chance too, and has no seed
  --shoppers P   how many people buy (default 6)
  --pace MS      mean time between two kills (default 2500)
  --faults LIST  what goes wrong besides kills, with commas between; none is nothing (default all of them):
${FAULTS}
  --per-fault K  there is a fault after so many kills on average (default 3)
  --speed X      how many times faster than real ones the mechanisms move (default 12)
  --bare         one cloud process with SQLite and the broker within: needs nothing installed; of faults only clock
  --keep         keeps the folder of all data and logs; it is kept where something is wrong

PostgreSQL is the server at TEST_POSTGRES_URL, or one of its own.`

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '50' },
    seed: { type: 'string', default: '1' },
    shoppers: { type: 'string', default: '6' },
    pace: { type: 'string', default: '2500' },
    speed: { type: 'string', default: '12' },
    faults: { type: 'string', default: allFaults.join(',') },
    'per-fault': { type: 'string', default: '3' },
    bare: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(HELP)
else process.exitCode = await chaos()

function whole(name: 'kills' | 'seed' | 'shoppers' | 'pace' | 'speed' | 'per-fault'): number {
  if (!/^\d{1,9}$/.test(values[name])) throw new Error(`--${name} takes a whole number, not ${values[name]}`)
  return Number(values[name])
}

function faults(): FaultKind[] {
  const names = values.faults === 'none' ? [] : values.faults.split(',')
  const unknown = names.find((name) => !Object.hasOwn(faultKinds, name))
  if (unknown !== undefined) throw new Error(`--faults takes ${allFaults.join(', ')}, not ${unknown}`)
  return names as FaultKind[]
}

async function chaos(): Promise<number> {
  const runtime = systemRuntime()
  const folder = mkdtempSync(join(tmpdir(), 'larder-chaos-'))
  const server = process.env['TEST_POSTGRES_URL']
  const database = values.bare
    ? undefined
    : server !== undefined && server !== ''
      ? await createPostgresDatabase(server, runtime)
      : await startPostgres({ folder, port: (await freePorts(1))[0]!, runtime })
  let isFine = false
  let current = 'starting the programs'
  const progress = progressOn(process.stderr, runtime.clock)
  const stopShowing = every(runtime.clock, 1000, () => progress.show(current))
  try {
    const began = runtime.clock.monotonic()
    const outcome = await runChaos({
      runtime,
      folder,
      kind: database ? { type: 'at-scale', databaseUrl: database.url } : { type: 'bare' },
      seed: whole('seed'),
      kills: whole('kills'),
      shoppers: whole('shoppers'),
      paceMs: whole('pace'),
      speed: whole('speed'),
      faults: faults(),
      killsPerFault: whole('per-fault'),
      onProgress: (text) => void (current = text),
    })
    progress.clear()
    console.log(reportOf(outcome, (runtime.clock.monotonic() - began) / 1000))
    isFine = outcome.violations.length === 0
  } finally {
    stopShowing()
    progress.clear()
    if (isFine || !values.keep) await database?.remove()
    if (isFine && !values.keep) rmSync(folder, { recursive: true, force: true })
    else console.log(`data and logs are in ${folder}`)
  }
  return isFine ? 0 : 1
}
