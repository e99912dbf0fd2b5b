import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import {
  ActionOutcome,
  ProgramState,
  StartRequest,
  StopRequest,
} from '../../protocol/management/supervisor.ts'
import { holdsWithin, type Clock } from '../../protocol/model/runtime.ts'
import { listenAtSocket, type OwnerSocket } from './owner-socket.ts'
import type { Supervisor } from './supervisor.ts'

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
