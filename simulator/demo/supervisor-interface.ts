import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import {
  ActionOutcome,
  ProgramState,
  StartRequest,
  StopRequest,
} from '../../protocol/management/supervisor.ts'
import { holdsWithin, type Clock } from '../../protocol/model/runtime.ts'
import type { Supervisor } from './supervisor.ts'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, chmodSync } from 'node:fs'
import { join, parse } from 'node:path'
import type { Proxy } from './proxy.ts'
import { createAdaptorServer } from '@hono/node-server'
import type { Server } from 'node:http'

export interface SupervisorInterfaceOptions<Name extends string> {
  supervisor: Supervisor<Name>
  /** The programs that may be stopped and started from outside, and how each says that it is ready. */
  programs: Readonly<Partial<Record<Name, () => Promise<boolean>>>>
  /** A Unix socket's path; only its owner may use it. */
  socket: string
  clock: Clock
}

const MAX_BODY = 4096

/** The local interface of the demo's supervisor (`protocol/management/supervisor.ts`): what systemd is on a board. */
export function openSupervisorInterface<Name extends string>(
  options: SupervisorInterfaceOptions<Name>,
): Promise<OwnerSocket> {
  const { supervisor, programs, socket, clock } = options

  async function stop(name: Name, killAfterMs: number): Promise<ActionOutcome> {
    const wasRunning = supervisor.stateOf(name).state === 'running'
    const isForced = await supervisor.halt(name, killAfterMs)
    const how = isForced ? `was killed: it had not ended within ${killAfterMs} ms` : 'ended'
    return { exit_code: 0, output: `the ${name} ${wasRunning ? how : 'was not running'}` }
  }

  async function start(name: Name, withinMs: number): Promise<ActionOutcome> {
    supervisor.resume(name)
    if (!(await holdsWithin(clock, withinMs, programs[name]!)))
      return { exit_code: 1, output: `the ${name} was not ready within ${withinMs} ms` }
    const { pid } = supervisor.stateOf(name)
    return { exit_code: 0, output: `the ${name} runs${pid === null ? '' : ` as process ${pid}`}` }
  }

  const app = new Hono()
  app.onError((error, c) => c.json({ error: String(error) }, 500))
  app.notFound((c) => c.json({ error: 'no such call' }, 405))
  app.use(bodyLimit({ maxSize: MAX_BODY, onError: (c) => c.json({ error: 'the body is too large' }, 422) }))
  app.use('/programs/:name/*', async (c, next) => {
    if (!Object.hasOwn(programs, c.req.param('name'))) return c.json({ error: 'no such program' }, 404)
    return next()
  })
  app.get('/programs/:name', (c) =>
    c.json(ProgramState.parse(supervisor.stateOf(c.req.param('name') as Name))),
  )
  app.post('/programs/:name/stop', async (c) => {
    const given = StopRequest.safeParse(jsonOf(await c.req.text()))
    if (!given.success) return c.json({ error: given.error.message }, 422)
    return c.json(ActionOutcome.parse(await stop(c.req.param('name') as Name, given.data.kill_after_ms)))
  })
  app.post('/programs/:name/start', async (c) => {
    const given = StartRequest.safeParse(jsonOf(await c.req.text()))
    if (!given.success) return c.json({ error: given.error.message }, 422)
    return c.json(ActionOutcome.parse(await start(c.req.param('name') as Name, given.data.ready_within_ms)))
  })

  return listenAtSocket(app, socket)
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

interface BenchInterfaceOptions {
  supervisor: Pick<Supervisor<'cloud' | 'edge'>, 'halt' | 'resume' | 'stateOf'>
  /** How each program says that it is ready. */
  isReady: Readonly<Record<'cloud' | 'edge', () => Promise<boolean>>>
  /** The hub's line to the broker. */
  line: Proxy
  /** The cloud's database; its files stand beside one another. */
  database: string
  /** Where its copy is kept. */
  copies: string
  /** A Unix socket's path; only its owner may use it. */
  socket: string
  clock: Clock
}

const KILL_AFTER_MS = 10_000
const READY_WITHIN_MS = 45_000
const programNames = ['cloud', 'edge'] as const
type ProgramName = (typeof programNames)[number]

/**
 * The interface through which scenarios act on the demo's programs and lines (`scenarios/bench.ts`):
 * `POST /programs/{cloud|edge}/{stop|start|kill}`, `/programs/cloud/{copy|restore}`, `/network/{away|back}`. Each call answers
 * when it is complete.
 */
export function openBenchInterface(options: BenchInterfaceOptions): Promise<OwnerSocket> {
  const { supervisor, isReady, line, clock, socket } = options

  async function start(name: ProgramName): Promise<void> {
    supervisor.resume(name)
    if (!(await holdsWithin(clock, READY_WITHIN_MS, isReady[name])))
      throw new Error(`the ${name} is not ready`)
  }
  const halt = (name: ProgramName): Promise<boolean> => supervisor.halt(name, KILL_AFTER_MS)

  /** Moves the database's files while no program has them open. */
  async function whileStopped(work: () => void): Promise<void> {
    await halt('cloud')
    try {
      work()
    } finally {
      await start('cloud')
    }
  }

  const verbs: Readonly<Record<string, (name: ProgramName) => Promise<void>>> = {
    stop: async (name) => void (await halt(name)),
    start,
    async kill(name) {
      await supervisor.halt(name, 0)
      await start(name)
    },
    copy: () => whileStopped(() => copyDatabase(options.database, options.copies)),
    restore: () => whileStopped(() => putBack(options.database, options.copies)),
  }

  const app = new Hono()
  app.onError((error, c) => c.text(error.message, 500))
  app.notFound((c) => c.text('no such call', 404))
  app.post('/programs/:name/:verb', async (c) => {
    const { name, verb } = c.req.param()
    const known = programNames.find((one) => one === name)
    const isOfCloud = verb === 'copy' || verb === 'restore'
    if (!known || !Object.hasOwn(verbs, verb) || (isOfCloud && known !== 'cloud'))
      return c.text('no such call', 404)
    await verbs[verb]!(known)
    return c.json({})
  })
  app.post('/network/:hub{away|back}', (c) => {
    if (c.req.param('hub') === 'away') line.bar()
    else line.calm()
    return c.json({})
  })

  return listenAtSocket(app, socket)
}

/** The files of a database, SQLite's journal included. */
const filesOf = (folder: string, database: string): string[] =>
  readdirSync(folder).filter((name) => name.startsWith(database))

function copyDatabase(database: string, copies: string): void {
  const { dir: folder, base: name } = parse(database)
  rmSync(copies, { recursive: true, force: true })
  mkdirSync(copies, { recursive: true })
  for (const file of filesOf(folder, name)) copyFileSync(join(folder, file), join(copies, file))
}

function putBack(database: string, copies: string): void {
  const { dir: folder, base: name } = parse(database)
  if (!existsSync(join(copies, name))) throw new Error('no copy of the database was made')
  for (const file of filesOf(folder, name)) rmSync(join(folder, file))
  for (const file of filesOf(copies, name)) copyFileSync(join(copies, file), join(folder, file))
}

export interface OwnerSocket {
  close(): void
}

/** Serves an interface at a Unix socket that only its owner may use. */
function listenAtSocket(app: Hono, socket: string): Promise<OwnerSocket> {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server
  // Removes the socket of an earlier start that was killed.
  rmSync(socket, { force: true })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(socket, () => {
      chmodSync(socket, 0o600)
      resolve({
        close() {
          server.close()
          server.closeAllConnections()
        },
      })
    })
  })
}
