import type { ServiceAction, ServiceState } from '../../protocol/management/command.ts'
import { request } from 'node:http'
import { z } from 'zod'
import {
  ActionOutcome,
  ProgramState,
  type StartRequest,
  type StopRequest,
} from '../../protocol/management/supervisor.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { execFile } from 'node:child_process'

/**
 * The program that runs the hub's service: systemd on a board, the demo's supervisor in the demo. Each call
 * ends within its time and returns its result as an exit code; no call throws.
 */
export interface ServiceManager {
  /** Stops the service, by force if it does not react. Exit code 0 if it has ended, or was not running. */
  stop(killAfterMs: number): Promise<ServiceAction>
  /** Starts the service, and waits until it is ready. Exit code 0 if it is ready, or was ready already. */
  start(readyWithinMs: number): Promise<ServiceAction>
  state(): Promise<ServiceState>
}

/** Extra time after a call's own time, for the manager's answer. */
const MANAGER_GRACE_MS = 3000

const MAX_OUTPUT = 2000

/** The end of the manager's output: errors come last. */
const outputOf = (...texts: readonly string[]): string =>
  texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')
    .slice(-MAX_OUTPUT)

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

/** One run of `systemctl`; `ended` is false if it was cut off. */
interface Run {
  code: number
  output: string
  ended: boolean
}
type Systemctl = (args: readonly string[], timeoutMs: number) => Promise<Run>

/**
 * The hub's service as a systemd unit with `Type=notify`: its start ends when it is ready. The unit's own
 * `TimeoutStopSec` may be longer than this service waits; then this service kills the unit.
 */
export function systemdManager(
  unit: string,
  clock: Clock,
  systemctl: Systemctl = runSystemctl,
): ServiceManager {
  const actionOf = ({ code, output }: Run, startedAt: number) => ({
    exit_code: code,
    duration_ms: Math.round(clock.monotonic() - startedAt),
    output: outputOf(output),
  })

  return {
    async stop(killAfterMs) {
      const startedAt = clock.monotonic()
      const asked = await systemctl(['stop', unit], killAfterMs)
      const run = asked.ended ? asked : await kill(asked)
      return actionOf(run, startedAt)
    },
    async start(readyWithinMs) {
      const startedAt = clock.monotonic()
      const run = await systemctl(['start', unit], readyWithinMs)
      const note = run.ended ? '' : `not ready within ${readyWithinMs} ms`
      return actionOf({ ...run, output: outputOf(run.output, note) }, startedAt)
    },
    async state() {
      const { code, output } = await systemctl(
        ['show', '--property=ActiveState,MainPID', unit],
        MANAGER_GRACE_MS,
      )
      const properties = new Map(output.split('\n').map((line) => line.split('=', 2) as [string, string]))
      const active = properties.get('ActiveState')
      if (code !== 0 || active === undefined) return { state: 'unknown', pid: null }
      const pid = Number(properties.get('MainPID'))
      return { state: active === 'active' ? 'running' : 'stopped', pid: pid > 0 ? pid : null }
    },
  }

  async function kill(asked: Run): Promise<Run> {
    const killed = await systemctl(['kill', '--signal=SIGKILL', unit], MANAGER_GRACE_MS)
    // The requested stop continues within systemd; this waits for it.
    const stopped = await systemctl(['stop', unit], MANAGER_GRACE_MS)
    return { ...stopped, output: outputOf(asked.output, killed.output, stopped.output, 'ended by SIGKILL') }
  }
}

/** The exit code of coreutils' `timeout`. */
const TIMED_OUT = 124
/** A shell's exit code for a missing program. */
const NOT_FOUND = 127

/** Runs without a shell, so arguments are passed unchanged. */
const runSystemctl: Systemctl = (args, timeoutMs) =>
  new Promise((resolve) => {
    execFile(
      'systemctl',
      ['--no-ask-password', ...args],
      { timeout: timeoutMs, maxBuffer: 64 * 1024, env: { PATH: process.env['PATH'], LC_ALL: 'C' } },
      (error, stdout, stderr) => {
        const output = outputOf(stdout, stderr)
        if (!error) return resolve({ code: 0, output, ended: true })
        if (error.killed) return resolve({ code: TIMED_OUT, output, ended: false })
        if (typeof error.code === 'number') return resolve({ code: error.code, output, ended: true })
        resolve({ code: NOT_FOUND, output: outputOf(output, error.message), ended: true })
      },
    )
  })
