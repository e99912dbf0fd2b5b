import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import { programCommand } from '../../simulator/demo/programs.ts'
import { freePorts } from '../process/chaos/ports.ts'

const READY_MS = 60_000

export interface ServedCloud {
  port: number
  pid: number
  stop(): Promise<void>
}

/** The real cloud program over a SQLite file, alone: no hub is there. It believes what callers say of their address. */
export async function serveCloud(options: {
  clock: Clock
  folder: string
  database: string
}): Promise<ServedCloud> {
  const { clock, folder, database } = options
  const [port, mqttPort] = (await freePorts(2)) as [number, number]
  mkdirSync(folder, { recursive: true })
  const [command, ...args] = programCommand('cloud/main')
  const log = openSync(join(folder, 'output.log'), 'a')
  const profile = process.env['BENCH_PROFILE']
  const child = spawn(command!, [...(profile ? ['--cpu-prof', `--cpu-prof-dir=${profile}`] : []), ...args], {
    stdio: ['ignore', log, log],
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      PORT: String(port),
      MQTT_PORT: String(mqttPort),
      DATA_DIR: folder,
      DATABASE_URL: `sqlite:${database}`,
      TRUSTED_PROXIES: '1',
    },
  })
  let died = false
  child.once('exit', () => (died = true))
  for (const end = clock.monotonic() + READY_MS; ; await sleep(clock, 100)) {
    const answers = await fetch(`http://127.0.0.1:${port}/`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (answers) break
    if (died || clock.monotonic() > end) throw new Error(`the cloud does not serve; see ${folder}/output.log`)
  }
  return {
    port,
    pid: child.pid!,
    async stop() {
      if (died) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
