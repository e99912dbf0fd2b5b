import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import { sleep, type Runtime } from '../../../protocol/model/runtime.ts'
import { createSupervisor } from '../../../simulator/demo/supervisor.ts'
import { administrate, databaseAt } from '../../support/postgres.ts'

export interface TestDatabase {
  url: string
  /** Drops it, and ends the server where it was started for it. */
  remove(): Promise<void>
}

/** A server of one's own. */
export interface TestServer extends TestDatabase {
  /** SIGINT ends its connections and shuts it down, SIGKILL is a crash. It is started again by itself. */
  signal(name: 'SIGINT' | 'SIGKILL'): void
  /** As SIGINT does, but it stays away until `start`, which resolves when it answers. */
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

/** Starts a PostgreSQL of its own, with its log in `folder`. Root cannot run one: it is the user postgres then. */
export async function startPostgres(options: {
  folder: string
  port: number
  runtime: Runtime
}): Promise<TestServer> {
  const { folder, port, runtime } = options
  const programs = postgresPrograms()
  const data = mkdtempSync(join(tmpdir(), 'larder-postgres-'))
  const isRoot = process.getuid?.() === 0
  if (isRoot) execFileSync('chown', ['postgres', data])
  const asUser = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'] : []
  const [first, ...rest] = [...asUser, join(programs, 'initdb'), '-D', data, '-U', 'larder', '-A', 'trust']
  execFileSync(first, [...rest, '-E', 'UTF8', '--locale=C', '--no-sync'], { stdio: 'ignore', cwd: '/' })
  const settings = [`listen_addresses=127.0.0.1`, `unix_socket_directories=${data}`, 'max_connections=100']
  const server = createSupervisor({
    programs: [
      {
        name: 'postgres',
        command: [
          ...asUser,
          join(programs, 'postgres'),
          '-D',
          data,
          '-p',
          String(port),
          ...settings.flatMap((setting) => ['-c', setting]),
        ],
        environment: {},
        logFile: join(folder, 'postgres.log'),
      },
    ],
    runtime,
    onStarted: () => {},
    onDied: () => {},
  })
  server.start()
  const url = `postgres://larder@127.0.0.1:${port}/postgres`
  await untilItAnswers(url, runtime)
  const database = await createPostgresDatabase(url, runtime)
  const signal: TestServer['signal'] = (name) => {
    const { pid } = server.stateOf('postgres')
    if (pid !== null) process.kill(pid, name)
  }
  return {
    url: database.url,
    signal,
    async stop() {
      const halted = server.halt('postgres', KILL_AFTER_MS)
      // SIGTERM alone has it wait for its clients.
      signal('SIGINT')
      await halted
    },
    async start() {
      server.resume('postgres')
      await untilItAnswers(url, runtime)
    },
    async remove() {
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** Where Debian keeps the programs of the newest PostgreSQL that is installed. */
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
