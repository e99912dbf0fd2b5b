import type { CommandBody } from '../../protocol/mqtt/command.ts'
import type { Queries } from '../store/database.ts'

export interface CommandRequest {
  hubId: number
  body: CommandBody
  /** Who asked, as the audit log says it. */
  actor: string
  /** How long to wait for the answer; `CloudSettings.commandTimeoutMs` by default. */
  timeoutMs?: number
  /**
   * Writes down what came of it, once: in the transaction that records the outcome where this process does that, else
   * after it. Queries alone: it may be undone and run again.
   */
  note?: (q: Queries, outcome: CommandOutcome) => Promise<void>
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

/** Sends commands to hubs; never queues one. */
export interface Commands {
  send(request: CommandRequest): Promise<CommandOutcome>
}
