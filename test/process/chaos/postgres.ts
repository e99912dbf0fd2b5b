import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import { sleep, type Runtime } from '../../../protocol/model/runtime.ts'
import { Supervisor } from '../../../simulator/demo/supervisor.ts'
import { administrate, databaseAt } from '../../support/postgres.ts'

export interface TestDatabase {
  url: string
  /** Drops the database, and ends the server if it was started for it. */
  remove(): Promise<void>
}

/** A separate PostgreSQL server. */
export interface TestServer extends TestDatabase {
  /** The folder of its Unix socket and its data. */
  data: string
  /** SIGINT ends its connections and shuts it down; SIGKILL is a crash. The server restarts automatically. */
  signal(name: 'SIGINT' | 'SIGKILL'): void
  /** Stops the server like SIGINT, until `start`, which resolves when the server answers. */
  stop(): Promise<void>
  start(): Promise<void>
}

const KILL_AFTER_MS = 5000

/** An empty database on the server at `serverUrl`. */
export async function createPostgresDatabase(serverUrl: string, runtime: Runtime): Promise<TestDatabase> {
  const name = `larder_chaos_${randomHex(runtime.random, 8)}`
  await administrate(serverUrl, `create database ${name}`)
  return {
    url: databaseAt(serverUrl, name),
    remove: () => administrate(serverUrl, `drop database ${name} with (force)`),
  }
}

/** PostgreSQL refuses to run as root: it runs as the user postgres then. */
export const asPostgres = (): string[] =>
  process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : []

/** A folder that belongs to the user of the server. */
export function postgresFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'larder-postgres-'))
  if (process.getuid?.() === 0) execFileSync('chown', ['postgres', folder])
  return folder
}

/**
 * Starts a separate PostgreSQL with its log in `folder`. `settings` are the server's. `prepare` changes files
 * of its data before the start. `standbyOf`: the server replicates this one. `programs`: the folder of its programs.
 */
export async function startPostgres(options: {
  folder: string
  port: number
  runtime: Runtime
  settings?: readonly string[]
  prepare?: (data: string) => void
  standbyOf?: TestServer
  programs?: string
}): Promise<TestServer> {
  const { folder, port, runtime, standbyOf } = options
  const programs = options.programs ?? postgresPrograms()
  const data = postgresFolder()
  const run = (program: string, ...rest: string[]): void => {
    const [first, ...more] = [...asPostgres(), join(programs, program), '-D', data, ...rest]
    execFileSync(first!, more, { stdio: 'ignore', cwd: '/' })
  }
  if (standbyOf) {
    run(
      'pg_basebackup',
      '-R',
      '-c',
      'fast',
      '--no-sync',
      '-h',
      standbyOf.data,
      '-p',
      new URL(standbyOf.url).port,
      '-U',
      'larder',
    )
    execFileSync('chmod', ['700', data])
  } else run('initdb', '-U', 'larder', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
  options.prepare?.(data)
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${data}`,
    'max_connections=100',
    ...(options.settings ?? []),
  ]
  const server = new Supervisor({
    programs: [
      {
        name: 'postgres',
        command: [
          ...asPostgres(),
          join(programs, 'postgres'),
          '-D',
          data,
          '-p',
          String(port),
          ...settings.flatMap((setting) => ['-c', setting]),
        ],
        environment: {},
        logFile: join(folder, `postgres-${port}.log`),
      },
    ],
    runtime,
    onStarted: () => {},
    onDied: () => {},
  })
  server.start()
  const url = `postgres://larder@127.0.0.1:${port}/postgres`
  const socket = `postgres://larder@localhost:${port}/postgres?host=${data}`
  await untilItAnswers(socket, runtime)
  const database = standbyOf
    ? { url: databaseAt(url, new URL(standbyOf.url).pathname.slice(1)) }
    : { url: databaseAt(url, new URL((await createPostgresDatabase(socket, runtime)).url).pathname.slice(1)) }
  const signal: TestServer['signal'] = (name) => {
    const { pid } = server.stateOf('postgres')
    if (pid !== null) process.kill(pid, name)
  }
  return {
    url: database.url,
    data,
    signal,
    async stop() {
      const halted = server.halt('postgres', KILL_AFTER_MS)
      // With SIGTERM the server would wait for its clients.
      signal('SIGINT')
      await halted
    },
    async start() {
      server.resume('postgres')
      await untilItAnswers(socket, runtime)
    },
    async remove() {
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** The Debian folder with the programs of the newest installed PostgreSQL. */
function postgresPrograms(): string {
  const home = '/usr/lib/postgresql'
  const versions = existsSync(home) ? readdirSync(home).sort((a, b) => Number(b) - Number(a)) : []
  const [newest] = versions.filter((version) => existsSync(join(home, version, 'bin/initdb')))
  if (newest === undefined) throw new Error(`there is no PostgreSQL in ${home}; set TEST_POSTGRES_URL`)
  return join(home, newest, 'bin')
}

async function untilItAnswers(url: string, { clock }: Runtime): Promise<void> {
  for (let attempt = 0; ; attempt++)
    try {
      return await administrate(url, 'select 1')
    } catch (error) {
      if (attempt === 100) throw error
      await sleep(clock, 100)
    }
}
