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

Customers buy from the real programs, which the test kills with SIGKILL at random: two cloud processes on PostgreSQL,
Mosquitto, the hub's service, and the simulator. The test also cuts, delays and slows the line between hub and broker, and
causes the faults below. At the end it checks the invariants. Exit status 1 if an invariant is violated.

  --kills N      number of kills (default 50)
  --seed S       seed of the random choices (default 1); the scheduling of processes has no seed
  --shoppers P   number of customers (default 6)
  --pace MS      mean time between two kills in milliseconds (default 2500)
  --faults LIST  faults in addition to kills, separated by commas, or none (default: all):
${FAULTS}
  --per-fault K  mean number of kills for each fault (default 3)
  --speed X      speed of the mechanisms, as a multiple of real ones (default 12)
  --bare         one cloud process with SQLite and the embedded broker, and no faults except clock; needs no installed service
  --keep         keeps the folder with all data and logs; it is also kept after a failure

The test uses the PostgreSQL server at TEST_POSTGRES_URL, or starts one.`

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
