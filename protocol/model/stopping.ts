import type { Log } from './log.ts'
import { duration, limits } from './program-settings.ts'
import type { Clock } from './runtime.ts'

export const { shutdownTimeout } = limits('Service', {
  shutdownTimeout: duration(
    8000,
    'Graceful shutdown timeout after SIGTERM or SIGINT. Then the program ends at once; nothing that was acknowledged is lost. A second signal ends it at once.',
    60_000,
  ),
})

export interface StopOptions {
  clock: Clock
  log: Pick<Log, 'info' | 'warn' | 'error'>
  timeoutMs: number
  /** Stops the program. If it takes too long, the process exits wherever it is. */
  stop: () => Promise<void>
  exit: (code: number) => void
}

/** npm and terminals pass one press of Ctrl-C on twice. */
const SAME_SIGNAL_MS = 500

/**
 * Stops a program: normally, or at once when the time is over or a second signal arrives. Returns the function to call
 * with each signal.
 */
export function stopper({ clock, log, timeoutMs, stop, exit }: StopOptions): (why: string) => void {
  let firstAt: number | undefined
  return (why) => {
    if (firstAt !== undefined) {
      if (clock.monotonic() - firstAt < SAME_SIGNAL_MS) return
      log.warn({ why }, 'second signal: ends at once')
      return exit(1)
    }
    firstAt = clock.monotonic()
    log.info({ why }, 'stopping')
    const cancel = clock.after(timeoutMs, () => {
      log.warn({ timeoutMs }, 'not stopped in time: ends at once')
      exit(1)
    })
    stop().then(
      () => {
        cancel()
        exit(0)
      },
      (error: unknown) => {
        cancel()
        log.error({ err: error }, 'stopping failed')
        exit(1)
      },
    )
  }
}
