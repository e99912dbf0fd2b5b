import type { ManagementAddress } from '../../../../cloud/operations/ssh/addresses.ts'
import { writeAddress } from '../../../../cloud/operations/ssh/addresses.ts'
import type { Remote, RemoteOutcome } from '../../../../cloud/operations/ssh/remote.ts'
import type { CloudDatabase } from '../../../../cloud/platform/store/database.ts'
import type { ManagementCommand } from '../../../../protocol/management/command.ts'

export const address: ManagementAddress = { host: '192.0.2.7', port: 22, hostKey: `SHA256:${'k'.repeat(43)}` }

export const register = (db: CloudDatabase, hubId = 1): Promise<void> =>
  writeAddress(db.kysely, hubId, address)

/** A hub's management service, with a line that can fail before or after the command. */
export interface ModelHub {
  remote: Remote
  /** The hub's stored configuration. */
  disabled: Set<number>
  calls: ManagementCommand[]
  /** Sets the results of the next calls; later calls succeed. */
  next(
    how: 'unreachable' | 'lost before' | 'lost after' | 'refused' | 'not started',
    ...more: ('unreachable' | 'lost before' | 'lost after')[]
  ): void
}

const result = (output: string) => ({ exit_code: 0, duration_ms: 5, output })

export function modelHub(): ModelHub {
  const disabled = new Set<number>()
  const calls: ManagementCommand[] = []
  const plan: string[] = []
  const lost: RemoteOutcome = { kind: 'failed', failure: 'timeout', error: 'no answer', isSent: true }

  function carryOut(command: ManagementCommand, isStarted: boolean): RemoteOutcome {
    if (command.name === 'enable-bin') disabled.delete(command.bin)
    if (command.name === 'disable-bin') disabled.add(command.bin)
    const results = { stop_result: result('stopped'), start_result: result('started') }
    const none = { stop_result: null, start_result: null }
    if (!isStarted)
      return {
        kind: 'answered',
        answer: {
          ok: false,
          hub_id: 1,
          error_type: 'command_failed',
          error: 'not ready',
          stored: true,
          ...results,
        },
      }
    return {
      kind: 'answered',
      answer: {
        ok: true,
        hub_id: 1,
        disabled_bins: [...disabled].toSorted((a, b) => a - b),
        service: { state: 'running', pid: 7 },
        ...(command.name === 'status' ? none : results),
      },
    }
  }

  return {
    disabled,
    calls,
    next: (how, ...more) => void plan.push(how, ...more),
    remote(_address, command) {
      calls.push(command)
      const how = plan.shift()
      if (how === 'unreachable')
        return Promise.resolve({
          kind: 'failed',
          failure: 'connection_error',
          error: 'refused',
          isSent: false,
        })
      if (how === 'lost before') return Promise.resolve(lost)
      if (how === 'refused')
        return Promise.resolve({
          kind: 'answered',
          answer: {
            ok: false,
            hub_id: 1,
            error_type: 'validation_error',
            error: 'no such bin',
            stored: false,
            stop_result: null,
            start_result: null,
          },
        })
      const outcome = carryOut(command, how !== 'not started')
      return Promise.resolve(how === 'lost after' ? lost : outcome)
    },
  }
}
