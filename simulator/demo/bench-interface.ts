import { Hono } from 'hono'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join, parse } from 'node:path'
import { holdsWithin, type Clock } from '../../protocol/model/runtime.ts'
import { listenAtSocket, type OwnerSocket } from './owner-socket.ts'
import type { Proxy } from './proxy.ts'
import type { Supervisor } from './supervisor.ts'

export interface BenchInterfaceOptions {
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
