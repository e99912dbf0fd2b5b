import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { commandOf } from './programs.ts'
import { isDone, once } from './once.ts'

const isSource = import.meta.filename.endsWith('.ts')

/**
 * The command that fills a database and a folder with the demo's data, as `cloud/demo/seed` does. In a run of tests the data is made
 * once and copied afterwards: making two years of orders takes most of a demo's start. `hardware`: the file of HARDWARE, if it is set.
 * The database is `larder.sqlite` in DATA_DIR.
 */
export function seedCopies(hardware?: string): readonly string[] {
  const seed = commandOf('cloud/demo/seed')
  const name = hardware === undefined ? 'demo-data' : 'demo-data-with-hardware'
  const made = join(tmpdir(), `${name}.files`)
  if (isSource) once(name, () => makeData(seed, made, hardware))
  if (!isDone(name)) return seed
  return ['sh', '-euc', 'cp -a "$0/cloud/." "$DATA_DIR" && cat "$0/result.json"', made]
}

function makeData(seed: [string, ...string[]], made: string, hardware: string | undefined): void {
  const cloud = join(made, 'cloud')
  mkdirSync(cloud, { recursive: true, mode: 0o700 })
  const { status, stdout, stderr } = spawnSync(seed[0], seed.slice(1), {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: `sqlite:${join(cloud, 'larder.sqlite')}`,
      DATA_DIR: cloud,
      ...(hardware !== undefined && { HARDWARE: hardware }),
    },
  })
  if (status !== 0) throw new Error(`the data of the demo is not made:\n${stderr}`)
  writeFileSync(join(made, 'result.json'), stdout, { mode: 0o600 })
}
