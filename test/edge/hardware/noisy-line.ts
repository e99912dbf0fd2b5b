import type { Clock } from '../../../protocol/model/runtime.ts'
import type { LinePortHandlers, OpenLinePort } from '../../../protocol/serial/line-port.ts'
import type { ScriptedController } from './scripted-controller.ts'

/** Result of one line: passed, lost, doubled, or with one changed character. */
export type Fate = 'pass' | 'lose' | 'double' | 'damage'

export interface NoisyLine {
  openPort: OpenLinePort
  /** Ends the connection like an unplugged cable. */
  unplug(): void
  /** Number of open ports. */
  opened: number
  open: number
  /** Makes the next attempts to open fail. */
  absent: boolean
}

/**
 * A line between the hub and a controller: in order, 1 ms in each direction, each line with its fate from
 * `fates`.
 */
export function noisyLine(clock: Clock, controller: ScriptedController, fates: () => Fate): NoisyLine {
  let current: { handlers: LinePortHandlers; live: boolean } | undefined
  const carry = (line: string, deliver: (line: string) => void): void => {
    const fate = fates()
    if (fate === 'lose') return
    const text = fate === 'damage' ? `${line.slice(0, 7)}#${line.slice(8)}` : line
    for (let copy = 0; copy < (fate === 'double' ? 2 : 1); copy++) clock.after(1, () => deliver(text))
  }
  const noisy: NoisyLine = {
    opened: 0,
    open: 0,
    absent: false,
    openPort(_options, handlers) {
      const connection = { handlers, live: true }
      noisy.opened++
      noisy.open++
      clock.after(1, () => {
        if (!connection.live) return
        if (noisy.absent) return end(connection, () => handlers.onClose('no such port'))
        current = connection
        controller.connect((line) =>
          carry(line, (text) => {
            if (connection.live) handlers.onLine(text)
          }),
        )
        handlers.onOpen()
      })
      return {
        write(line) {
          if (!connection.live) return false
          carry(line, (text) => controller.receive(text))
          return true
        },
        close: () => end(connection),
      }
    },
    unplug() {
      const connection = current
      if (connection?.live) end(connection, () => connection.handlers.onClose('unplugged'))
    },
  }
  function end(connection: { live: boolean }, then: () => void = () => {}): void {
    if (!connection.live) return
    connection.live = false
    noisy.open--
    then()
  }
  return noisy
}
