import type { CommandBody } from '../../protocol/mqtt/command.ts'

export interface CommandRequest {
  hubId: number
  body: CommandBody
  /** Who asked, as the audit log says it. */
  actor: string
  /** How long to wait for the answer; `CloudSettings.commandTimeoutMs` by default. */
  timeoutMs?: number
}

/**
 * What became of a command, as far as is known when its time is up.
 * - `executed`: done; `data` as `CommandResult.data` says.
 * - `refused`: nothing moved. `failed`: tried, see `reason` (`CommandReason`).
 * - `offline`: nothing was sent, and nothing will be (I2).
 * - `timeout`: no answer came; it may or may not have happened. A late result still updates the command's row.
 */
export type CommandOutcome =
  | { kind: 'executed'; commandId: string; data: Record<string, unknown>; durationMs: number }
  | {
      kind: 'refused' | 'failed'
      commandId: string
      reason: string
      data: Record<string, unknown> | null
    }
  | { kind: 'offline' }
  | { kind: 'timeout'; commandId: string }

/** Sends commands to hubs; never queues one. Each is in the audit log with what came of it. */
export interface Commands {
  send(request: CommandRequest): Promise<CommandOutcome>
}
