import { spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  openSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  chmodSync,
} from 'node:fs'
import {
  ProgramState,
  ActionOutcome,
  StartRequest,
  StopRequest,
} from '../../protocol/management/supervisor.ts'
import {
  backoffMs,
  type Cancel,
  type Runtime,
  holdsWithin,
  type Clock,
} from '../../protocol/model/runtime.ts'
import { dyingWithParent } from '../mounts/gpio/mounted-command.ts'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { join, parse } from 'node:path'
import type { Proxy } from './proxy.ts'
import { createAdaptorServer } from '@hono/node-server'
import type { Server } from 'node:http'

export interface Program<Name extends string> {
  name: Name
  /** The program and its arguments. */
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  /** Its output is appended to this file. */
  logFile: string
  /** It reports the process id of the actual program by `{type: 'started', pid}`. */
  reportsPid?: boolean
}

interface SupervisorOptions<Name extends string> {
  programs: readonly Program<Name>[]
  runtime: Runtime
  /** For all programs; it overrides this process's environment, and a program's own overrides it. */
  environment?: Readonly<Record<string, string>>
  /** Called each time a program was started. */
  onStarted(name: Name, pid: number): void
  /** Called each time a program ended without a request, with the way in which it ended and the number of its starts. */
  onDied(name: Name, how: string, starts: number): void
}

const restart = { firstMs: 100, maxMs: 5000 }
/** A program that ran for this long is restarted at once. */
const HEALTHY_MS = 10_000
const KILL_AFTER_MS = 5000

/** Keeps programs running as processes of their own, until stopped. */
export class Supervisor<Name extends string = string> {
  readonly #options: SupervisorOptions<Name>
  readonly #children = new Map<Name, Running>()
  readonly #prefix = dyingWithParent()
  readonly #restarts = new Map<Name, Cancel>()
  readonly #halted = new Set<Name>()
  #isStopping = false

  constructor(options: SupervisorOptions<Name>) {
    this.#options = options
  }

  start(): void {
    for (const program of this.#options.programs) this.#run(program, 0, 1)
  }

  stateOf(name: Name): ProgramState {
    const running = this.#children.get(name)
    return running ? { state: 'running', pid: running.pid ?? null } : { state: 'stopped', pid: null }
  }

  /**
   * Ends one program: SIGTERM, and SIGKILL after `killAfterMs`. It stays ended until `resume`. True if SIGKILL was necessary.
   */
  async halt(name: Name, killAfterMs: number): Promise<boolean> {
    this.#halted.add(name)
    this.#restarts.get(name)?.()
    const running = this.#children.get(name)
    return running ? this.#end(running, killAfterMs) : false
  }

  /** Starts a program that was halted, and keeps it running again. Does nothing if it runs. */
  resume(name: Name): void {
    const program = this.#options.programs.find((each) => each.name === name)
    if (!this.#halted.delete(name) || !program || this.#children.has(name) || this.#isStopping) return
    this.#run(program, 0, 1)
  }

  /** Ends every program with SIGTERM, after five seconds with SIGKILL. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const cancel of this.#restarts.values()) cancel()
    await Promise.all([...this.#children.values()].map((running) => this.#end(running, KILL_AFTER_MS)))
  }

  #run(program: Program<Name>, attempt: number, starts: number): void {
    const { clock, random } = this.#options.runtime
    const command = [...this.#prefix, ...program.command]
    const output = openSync(program.logFile, 'a')
    const startedAt = clock.monotonic()
    const child = spawn(command[0]!, command.slice(1), {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, ...this.#options.environment, ...program.environment },
      // Ctrl-C in a terminal is for this process only, which then ends the others in order.
      detached: true,
    })
    closeSync(output)
    const running: Running = { child, pid: program.reportsPid ? undefined : child.pid }
    this.#children.set(program.name, running)
    if (program.reportsPid)
      child.on('message', (message) => {
        const { type, pid } = message as { type?: unknown; pid?: unknown }
        if (type !== 'started' || typeof pid !== 'number') return
        running.pid = pid
        this.#options.onStarted(program.name, pid)
      })
    else if (child.pid !== undefined) this.#options.onStarted(program.name, child.pid)

    let hasEnded = false
    const onEnd = (how: string): void => {
      if (hasEnded) return
      hasEnded = true
      if (this.#children.get(program.name) === running) this.#children.delete(program.name)
      if (this.#isStopping || this.#halted.has(program.name)) return
      this.#options.onDied(program.name, how, starts)
      const next = clock.monotonic() - startedAt >= HEALTHY_MS ? 0 : attempt + 1
      const delayMs = next === 0 ? 0 : backoffMs(next - 1, restart, random)
      this.#restarts.set(
        program.name,
        clock.after(delayMs, () => this.#run(program, next, starts + 1)),
      )
    }
    child.once('error', (error) => onEnd(error.message))
    child.once('exit', (code, signal) => onEnd(signal ?? `exit status ${code}`))
  }

  /** Ends a program with SIGTERM, and with SIGKILL if it does not end in time. Returns whether SIGKILL was necessary. */
  async #end(running: Running, killAfterMs: number): Promise<boolean> {
    const { child } = running
    const exit = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGTERM')
    // A suspended process receives no signal before it continues; service managers do the same.
    for (const pid of pidsOf(running)) signal(pid, 'SIGCONT')
    let isForced = false
    const cancel = this.#options.runtime.clock.after(killAfterMs, () => {
      isForced = true
      // The actual program first: it must not survive its starter.
      for (const pid of pidsOf(running)) signal(pid, 'SIGKILL')
    })
    await exit
    cancel()
    return isForced
  }
}

interface Running {
  child: ChildProcess
  /** Process id of the actual program, if its starter has reported it. */
  pid: number | undefined
}

/** The actual program first, then its starter. */
const pidsOf = ({ child, pid }: Running): number[] => [
  ...new Set([pid, child.pid].filter((each) => each !== undefined)),
]

/** Sends a signal to a process, which may have ended. */
function signal(pid: number, name: 'SIGCONT' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

interface SupervisorInterfaceOptions<Name extends string> {
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

const HALT_AFTER_MS = 10_000
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
  const halt = (name: ProgramName): Promise<boolean> => supervisor.halt(name, HALT_AFTER_MS)

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
    else line.clearFaults()
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
