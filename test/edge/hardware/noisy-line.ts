import type { Clock } from '../../../protocol/model/runtime.ts'
import type { LinePortHandlers, OpenLinePort } from '../../../protocol/serial/line-port.ts'
import type { ScriptedController } from './scripted-controller.ts'

/** What becomes of one line: passed, lost, passed twice, or one character changed. */
export type Fate = 'pass' | 'lose' | 'double' | 'damage'

export interface NoisyLine {
  openPort: OpenLinePort
  /** Ends the connection as an unplugged cable does. */
  unplug(): void
  /** How many ports were opened, and not closed since. */
  opened: number
  open: number
  /** Fails the next attempts to open. */
  absent: boolean
}

/** A line between the hub and a controller: in order, 1 ms each way, each line with the fate that `fates` gives it. */
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
