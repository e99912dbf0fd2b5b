import type { Log } from './log.ts'
import { duration, limits } from './program-settings.ts'
import type { Clock } from './runtime.ts'

/** How long a program may take to stop; every program has it. */
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
  /** Stops in good order. What it does is cut off where it takes too long, wherever it is by then. */
  stop: () => Promise<void>
  exit: (code: number) => void
}

/** npm and terminals pass one press of Ctrl-C on twice. */
const SAME_SIGNAL_MS = 500

/**
 * Ends a program: in good order, or without waiting any longer when its time is over or it is told a second time. Returns
 * what to call with each signal.
 */
export function stopper({ clock, log, timeoutMs, stop, exit }: StopOptions): (why: string) => void {
  let toldAt: number | undefined
  return (why) => {
    if (toldAt !== undefined) {
      if (clock.monotonic() - toldAt < SAME_SIGNAL_MS) return
      log.warn({ why }, 'told a second time to stop: ends at once')
      return exit(1)
    }
    toldAt = clock.monotonic()
    log.info({ why }, 'stopping')
    const cancel = clock.after(timeoutMs, () => {
      log.warn({ timeoutMs }, 'not stopped in time: ends as it is')
      exit(1)
    })
    stop().then(
      () => {
        cancel()
        exit(0)
      },
      (error: unknown) => {
        cancel()
        log.error({ err: error }, 'not stopped in good order')
        exit(1)
      },
    )
  }
}
