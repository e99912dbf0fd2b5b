import type { HardwareDescription } from '../protocol/model/hardware.ts'
import { copiedLog, type Log } from '../protocol/model/log.ts'
import type { Clock } from '../protocol/model/runtime.ts'
import type { OpenLinePort } from '../protocol/serial/line-port.ts'

/** Instants are wall-clock milliseconds. */
export interface LoggedLine {
  at: number
  level: keyof Log
  message: string
  fields: object
}

export interface WireLine {
  at: number
  controller: string
  /** `in`: from the controller. */
  direction: 'in' | 'out'
  line: string
}

/** Recent log records and serial lines, in memory, for people at the hub. */
export interface Recent {
  log: readonly LoggedLine[]
  wire: readonly WireLine[]
}

export interface RecentOptions {
  clock: Clock
  hardware: HardwareDescription
  /** Number of stored records of each kind. */
  kept: number
}

/** Stores the newest records of a log and of serial lines that pass through it. */
export function createRecent({ clock, hardware, kept }: RecentOptions) {
  const log: LoggedLine[] = []
  const wire: WireLine[] = []
  const names = new Map(hardware.controllers.map(({ id, port }) => [port, id]))

  function keep<T>(all: T[], one: T): void {
    all.push(one)
    // Removes a quarter at once: a single removal would move all the others.
    if (all.length >= kept * 1.25) all.splice(0, all.length - kept)
  }

  return {
    read: (): Recent => ({ log: log.slice(-kept), wire: wire.slice(-kept) }),
    /** A log that also stores its records here, except debug records. */
    log: (to: Log): Log =>
      copiedLog(to, (level, fields, message) =>
        keep(log, { at: clock.now(), level, message, fields: plain(fields) }),
      ),
    /** A port opener that also stores its lines here. */
    port:
      (open: OpenLinePort): OpenLinePort =>
      (options, handlers) => {
        const controller = names.get(options.path) ?? options.path
        const note = (direction: WireLine['direction'], line: string): void =>
          keep(wire, { at: clock.now(), controller, direction, line })
        const port = open(options, {
          onOpen: () => handlers.onOpen(),
          onClose: (reason) => handlers.onClose(reason),
          onLine(line) {
            note('in', line)
            handlers.onLine(line)
          },
        })
        return {
          write(line) {
            const isQueued = port.write(line)
            if (isQueued) note('out', line)
            return isQueued
          },
          close: () => port.close(),
        }
      },
  }
}

/** The fields as JSON; an error becomes its message. */
export const plain = (fields: object): object =>
  Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? value.message : (value as unknown),
    ]),
  )
