import type { ServiceAction, ServiceState } from '../../protocol/management/command.ts'

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
export const MANAGER_GRACE_MS = 3000

const MAX_OUTPUT = 2000

/** The end of the manager's output: errors come last. */
export const outputOf = (...texts: readonly string[]): string =>
  texts
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join('\n')
    .slice(-MAX_OUTPUT)
