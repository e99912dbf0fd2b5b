import type { ServiceAction, ServiceState } from '../../protocol/management/command.ts'

/**
 * What runs the hub's service: systemd on a board, the demo's supervisor in the demo. Each call ends within its time, and
 * says by its exit code what came of it; none throws.
 */
export interface ServiceManager {
  /** Ends the service, by force where it does not heed. 0 where it has ended, or was not running. */
  stop(killAfterMs: number): Promise<ServiceAction>
  /** Starts the service, and waits until it is ready. 0 where it is, or was already. */
  start(readyWithinMs: number): Promise<ServiceAction>
  state(): Promise<ServiceState>
}

/** Beyond a call's own time: for the manager to say what became of it. */
export const MANAGER_GRACE_MS = 3000

const MAX_OUTPUT = 2000

/** The end of what a manager wrote: errors come last. */
export const outputOf = (...texts: readonly string[]): string =>
  texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')
    .slice(-MAX_OUTPUT)
