import { request } from 'node:http'
import { z } from 'zod'
import type { ServiceAction } from '../../protocol/management/command.ts'
import {
  ActionOutcome,
  ProgramState,
  type StartRequest,
  type StopRequest,
} from '../../protocol/management/supervisor.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { MANAGER_GRACE_MS, outputOf, type ServiceManager } from './service-manager.ts'

/** Exit code: the supervisor could not be reached. */
const UNREACHABLE = 69

/** The hub's service as a program of a supervisor with a local interface: HTTP on a Unix socket. */
export function supervisorManager(
  { socket, program }: { socket: string; program: string },
  clock: Clock,
): ServiceManager {
  async function act(
    verb: 'stop' | 'start',
    body: z.infer<typeof StopRequest> | z.infer<typeof StartRequest>,
    timeoutMs: number,
  ): Promise<ServiceAction> {
    const startedAt = clock.monotonic()
    let outcome: ActionOutcome
    try {
      outcome = ActionOutcome.parse(await ask('POST', `/programs/${program}/${verb}`, timeoutMs, body))
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      outcome = { exit_code: UNREACHABLE, output: `the supervisor cannot be asked: ${why}` }
    }
    return {
      exit_code: outcome.exit_code,
      duration_ms: Math.round(clock.monotonic() - startedAt),
      output: outputOf(outcome.output),
    }
  }

  function ask(method: string, path: string, timeoutMs: number, body?: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = request(
        { socketPath: socket, method, path, signal: AbortSignal.timeout(timeoutMs) },
        (response) => {
          let text = ''
          response.setEncoding('utf8')
          response.on('data', (chunk: string) => (text += chunk))
          response.once('error', reject)
          response.once('end', () => {
            if (response.statusCode !== 200) return reject(new Error(`HTTP ${response.statusCode}: ${text}`))
            try {
              resolve(JSON.parse(text))
            } catch (error) {
              reject(error)
            }
          })
        },
      )
      call.once('error', reject)
      call.end(body && JSON.stringify(body))
    })
  }

  return {
    stop: (killAfterMs) => act('stop', { kill_after_ms: killAfterMs }, killAfterMs + MANAGER_GRACE_MS),
    start: (readyWithinMs) =>
      act('start', { ready_within_ms: readyWithinMs }, readyWithinMs + MANAGER_GRACE_MS),
    async state() {
      try {
        return ProgramState.parse(await ask('GET', `/programs/${program}`, MANAGER_GRACE_MS))
      } catch {
        return { state: 'unknown', pid: null }
      }
    },
  }
}
