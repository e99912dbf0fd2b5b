import type { CommandReason } from '../../protocol/mqtt/command.ts'
import type { CommandEnd } from '../journal/commands.ts'
import { finishCommand } from './command-results.ts'
import type { Context } from './context.ts'

/**
 * Begins to reconnect a device: after the commit its controller's serial port is closed and opened anew. The command ends
 * when the controller has shaken hands on the new connection, or has not for too long. What runs on the controller runs
 * on, and is asked for then.
 */
export function beginReconnect(context: Context, id: string, device: string): CommandReason | undefined {
  const controller = context.layout.controllerOf(device)
  if (controller === undefined) return 'not_found'
  const { clock } = context.runtime
  context.store.afterCommit(() => {
    const begunAt = clock.monotonic()
    const cancel = clock.after(context.settings.reconnectMs, () =>
      context.turn(() =>
        end(context, id, { outcome: 'failed', reason: 'timeout', data: { connected: false } }),
      ),
    )
    context.reconnecting.set(id, { controller, begunAt, cancel })
    context.controllers.reopen(device)
  })
  return undefined
}

/** A controller has shaken hands. */
export function endReconnects(context: Context, controller: string): void {
  const now = context.runtime.clock.monotonic()
  for (const [id, waiting] of context.reconnecting)
    if (waiting.controller === controller)
      end(context, id, {
        outcome: 'executed',
        reason: null,
        data: { connected: true, duration_ms: Math.round(now - waiting.begunAt) },
      })
}

function end(context: Context, id: string, outcome: CommandEnd): void {
  context.reconnecting.get(id)?.cancel()
  context.reconnecting.delete(id)
  const command = context.journal.commands.find(id)
  if (command && command.outcome === null) finishCommand(context, command, outcome)
}
