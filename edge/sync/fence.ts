import type { Command } from '../../protocol/mqtt/command.ts'

/**
 * Whether a command may still be executed (I2, SPEC §6). It must be for this connection, and arrive before
 * its expiry on this hub's own monotonic clock. A refused command leaves no trace at the hub.
 */
export function judgeCommand(
  command: Pick<Command, 'session' | 'expires_monotonic'>,
  session: string,
  monotonicMs: number,
): 'pass' | 'stale_session' | 'expired' {
  if (command.session !== session) return 'stale_session'
  return monotonicMs > command.expires_monotonic ? 'expired' : 'pass'
}
