import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, openSync } from 'node:fs'
import { extname, join } from 'node:path'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import { programCommand } from '../../simulator/demo/programs.ts'
import { freePorts } from '../support/ports.ts'

const READY_MS = 120_000
/** Extension of the programs beside this one: compiled or not like this one. */
const EXTENSION = extname(import.meta.filename)
/** Secret of picture addresses: a baseline program creates equal addresses. */
export const MEDIA_SECRET = 'a secret that all benches have in common'
/** Secret that processes on one database share. */
const STORE_SECRET = 'another secret that all benches have in common'

export interface ServedCloud {
  port: number
  baseUrl: string
  pid: number
  /** Starts a new profile for the next phase, if profiles are enabled (`BENCH_PROFILE`). */
  phase(name: string): Promise<void>
  stop(): Promise<void>
  /** Kills it like SIGKILL. */
  kill(): Promise<void>
}

/**
 * The real cloud program on a SQLite file, or on the database and broker in `environment`. It trusts the
 * addresses that callers send.
 */
export async function serveCloud(options: {
  clock: Clock
  folder: string
  database: string
  environment?: Readonly<Record<string, string>>
}): Promise<ServedCloud> {
  const { clock, folder, database, environment = {} } = options
  const free = await freePorts(2)
  const port = Number(environment['PORT'] ?? free[0])
  const baseUrl = `http://127.0.0.1:${port}`
  mkdirSync(folder, { recursive: true })
  const log = openSync(join(folder, 'output.log'), 'a')
  const profile = process.env['BENCH_PROFILE']
  const preloaded = profile ? ['--import', new URL(`./profiled${EXTENSION}`, import.meta.url).href] : []
  const [node, ...program] = programCommand('cloud/main')
  const child = spawn(node!, [...preloaded, ...program], {
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

/** Limits of unauthenticated callers are per address, so there are many addresses. */
export const addressOf = (n: number): string => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`

/** Access tokens of customers `bench-1`, `bench-2` …, in order. */
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
