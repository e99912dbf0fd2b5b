import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync } from 'node:fs'
import { extname, join } from 'node:path'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import { programCommand } from '../../simulator/demo/programs.ts'
import { freePorts } from '../process/chaos/ports.ts'
import type { Held } from './held.ts'

const READY_MS = 120_000
/** Of the programs beside this one: compiled or not as it is. */
const EXTENSION = extname(import.meta.filename)
/** Of the addresses of pictures: a bare counterpart gives the same ones. */
export const MEDIA_SECRET = 'a secret that all benches have in common'
/** Processes with one database share it. */
const STORE_SECRET = 'another secret that all benches have in common'

export interface ServedCloud {
  port: number
  baseUrl: string
  pid: number
  /** What comes from now on has a profile of its own, where there is one (`BENCH_PROFILE`). */
  phase(name: string): Promise<void>
  stop(): Promise<void>
  /** As SIGKILL does. */
  kill(): Promise<void>
}

/**
 * The real cloud program over a SQLite file, or over the database and with the broker that `environment` names. It believes
 * what callers say of their address.
 */
export async function serveCloud(options: {
  clock: Clock
  folder: string
  database: string
  environment?: Readonly<Record<string, string>>
  /** Holds it to a part of the processor. */
  held?: Held
}): Promise<ServedCloud> {
  const { clock, folder, database, environment = {}, held } = options
  const free = await freePorts(2)
  const port = Number(environment['PORT'] ?? free[0])
  const baseUrl = `http://127.0.0.1:${port}`
  mkdirSync(folder, { recursive: true })
  const log = openSync(join(folder, 'output.log'), 'a')
  const profile = process.env['BENCH_PROFILE']
  const preloaded = profile ? ['--import', new URL(`./profiled${EXTENSION}`, import.meta.url).href] : []
  const [node, ...program] = programCommand('cloud/main')
  const whole = [node!, ...preloaded, ...program]
  const [command, ...args] = held ? held.command(whole) : whole
  const child = spawn(command!, args, {
    stdio: ['ignore', log, log, ...(profile ? ['ipc' as const] : [])],
    env: {
      ...(profile && { BENCH_PROFILE: profile }),
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      PORT: String(port),
      MQTT_PORT: String(free[1]),
      DATA_DIR: folder,
      DATABASE_URL: `sqlite:${database}`,
      TRUSTED_PROXIES: '1',
      MEDIA_SECRET,
      STORE_SECRET,
      // All callers of a benchmark come from one machine, and readers share a few keys.
      GUESTS_PER_MINUTE: '1000000',
      HTTP_CONNECTIONS_PER_NETWORK: '5000',
      STREAMS: '5000',
      STREAMS_PER_NETWORK: '5000',
      STREAMS_PER_OWNER: '5000',
      STREAMS_PER_KEY: '300',
      BROKER_UNSIGNED: '10000',
      BROKER_UNSIGNED_PER_NETWORK: '10000',
      ...environment,
    },
  })
  let died = false
  child.once('exit', () => (died = true))
  for (const end = clock.monotonic() + READY_MS; ; await sleep(clock, 100)) {
    const answers = await fetch(`${baseUrl}/`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (answers) break
    if (died || clock.monotonic() > end) throw new Error(`the cloud does not serve; see ${folder}/output.log`)
  }
  async function end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (died) return
    child.kill(signal)
    await once(child, 'exit')
  }
  return {
    port,
    baseUrl,
    pid: child.pid!,
    async phase(name) {
      if (!profile || died) return
      child.send(name)
      await once(child, 'message')
    },
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  }
}

/** Limits of what anybody may ask are by address: callers are many. */
export const addressOf = (n: number): string => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`

/** Access tokens of customers `bench-1`, `bench-2` …, in their order. */
export async function tokensOf({ port }: ServedCloud, count: number): Promise<string[]> {
  const tokens: string[] = []
  for (let n = 1; n <= count; n += 1) {
    const issued = await fetch(`http://127.0.0.1:${port}/demo/identity/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': addressOf(n) },
      body: JSON.stringify({ sub: `bench-${n}` }),
    })
    tokens.push(((await issued.json()) as { access_token: string }).access_token)
  }
  return tokens
}
