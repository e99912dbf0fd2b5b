import { execFile } from 'node:child_process'
import type { Clock } from '../../protocol/model/runtime.ts'
import { MANAGER_GRACE_MS, outputOf, type ServiceManager } from './service-manager.ts'

/** One run of `systemctl`; `ended` is false if it was cut off. */
export interface Run {
  code: number
  output: string
  ended: boolean
}
export type Systemctl = (args: readonly string[], timeoutMs: number) => Promise<Run>

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
