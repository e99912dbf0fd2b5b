import { chmodSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  ActionOutcome,
  ProgramState,
  StartRequest,
  StopRequest,
} from '../../protocol/management/supervisor.ts'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import type { Supervisor } from './supervisor.ts'

export interface SupervisorInterfaceOptions<Name extends string> {
  supervisor: Supervisor<Name>
  /** The programs that may be stopped and started from outside, and how each says that it is ready. */
  programs: Readonly<Partial<Record<Name, () => Promise<boolean>>>>
  /** A Unix socket's path; only its owner may use it. */
  socket: string
  clock: Clock
}

export interface SupervisorInterface {
  close(): void
}

const READY_POLL_MS = 100
const MAX_BODY = 4096

/** The local interface of the demo's supervisor (`protocol/management/supervisor.ts`): what systemd is on a board. */
export function openSupervisorInterface<Name extends string>(
  options: SupervisorInterfaceOptions<Name>,
): Promise<SupervisorInterface> {
  const { supervisor, programs, socket, clock } = options

  async function answer(request: IncomingMessage): Promise<{ status: number; body: object }> {
    const match = /^\/programs\/([\w-]+)(?:\/(stop|start))?$/.exec(request.url ?? '')
    const name = match?.[1] as Name | undefined
    if (name === undefined || !programs[name]) return { status: 404, body: { error: 'no such program' } }
    const verb = match?.[2]
    if (request.method === 'GET' && verb === undefined)
      return { status: 200, body: ProgramState.parse(supervisor.standing(name)) }
    if (request.method !== 'POST' || verb === undefined)
      return { status: 405, body: { error: 'no such call' } }
    const given = await readJson(request)
    const parsed = (verb === 'stop' ? StopRequest : StartRequest).safeParse(given)
    if (!parsed.success) return { status: 422, body: { error: parsed.error.message } }
    const outcome =
      'kill_after_ms' in parsed.data
        ? await stop(name, parsed.data.kill_after_ms)
        : await start(name, programs[name], parsed.data.ready_within_ms)
    return { status: 200, body: ActionOutcome.parse(outcome) }
  }

  async function stop(name: Name, killAfterMs: number): Promise<ActionOutcome> {
    if (supervisor.standing(name).state === 'stopped') {
      await supervisor.halt(name, killAfterMs)
      return { exit_code: 0, output: `the ${name} was not running` }
    }
    const isForced = await supervisor.halt(name, killAfterMs)
    const how = isForced ? `was killed: it had not ended within ${killAfterMs} ms` : 'ended'
    return { exit_code: 0, output: `the ${name} ${how}` }
  }

  async function start(
    name: Name,
    isReady: () => Promise<boolean>,
    withinMs: number,
  ): Promise<ActionOutcome> {
    supervisor.resume(name)
    const end = clock.monotonic() + withinMs
    do {
      if (await isReady()) {
        const { pid } = supervisor.standing(name)
        return { exit_code: 0, output: `the ${name} runs${pid === null ? '' : ` as process ${pid}`}` }
      }
      await sleep(clock, READY_POLL_MS)
    } while (clock.monotonic() < end)
    return { exit_code: 1, output: `the ${name} was not ready within ${withinMs} ms` }
  }

  const server = createServer((request, response) => {
    answer(request).then(
      ({ status, body }) => send(response, status, body),
      (error: unknown) => send(response, 500, { error: String(error) }),
    )
  })
  // One that an earlier, killed start left.
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

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += String(chunk)
    if (text.length > MAX_BODY) return undefined
  }
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
