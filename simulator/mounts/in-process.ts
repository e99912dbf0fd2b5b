import type { Clock } from '../../protocol/model/runtime.ts'
import type { LinePort, OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { Wire } from './wire.ts'

export interface InProcessOptions {
  clock: Clock
  /** How long a line takes, in milliseconds; asked for each. Lines of one direction never overtake one another. */
  latencyMs: () => number
}

/**
 * The serial lines of a simulated hub within one process. What was written before a port was closed arrives all the
 * same, as bytes in an adapter's buffer do.
 */
export function mountInProcess(wires: readonly Wire[], { clock, latencyMs }: InProcessOptions): OpenLinePort {
  return ({ path }, handlers) => {
    const wire = wires.find((one) => one.port === path || one.controllerId === path)
    let open = false
    let ended = false
    const toController = inOrder(clock, latencyMs, (line) => wire?.toController(line))
    const toHost = inOrder(clock, latencyMs, (line) => {
      if (open) handlers.onLine(line)
    })
    let release = (): void => {}
    clock.after(0, () => {
      if (ended) return
      if (!wire) {
        ended = true
        handlers.onClose(`no such port: ${path}`)
        return
      }
      open = true
      release = wire.onLine(toHost)
      handlers.onOpen()
    })
    const port: LinePort = {
      write(line) {
        if (open) toController(line)
        return open
      },
      close() {
        open = false
        ended = true
        release()
      },
    }
    return port
  }
}

function inOrder(
  clock: Clock,
  latencyMs: () => number,
  deliver: (line: string) => void,
): (line: string) => void {
  let latest = 0
  return (line) => {
    const now = clock.monotonic()
    latest = Math.max(latest, now + latencyMs())
    clock.after(latest - now, () => deliver(line))
  }
}
