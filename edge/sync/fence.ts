import type { Command } from '../../protocol/mqtt/command.ts'

/**
 * Whether a command may still be carried out (I2, SPEC §6): it must be for this very connection, and come before its time
 * on this hub's own monotonic clock is up. What the fence refuses leaves no trace at the hub.
 */
export function judgeCommand(
  command: Pick<Command, 'session' | 'expires_monotonic'>,
  session: string,
  monotonicMs: number,
): 'pass' | 'stale_session' | 'expired' {
  if (command.session !== session) return 'stale_session'
  return monotonicMs > command.expires_monotonic ? 'expired' : 'pass'
}
