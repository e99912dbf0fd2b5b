import type { Readable } from 'node:stream'
import type { Clock } from '../../protocol/model/runtime.ts'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter, type LinePort, type OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { LineFilter } from '../faults/line-faults.ts'
import type { Controller } from '../firmware/controller.ts'

/** The end of a controller's serial line that a mount holds. */
export interface Wire {
  readonly controllerId: string
  /** `port` of the hardware description. */
  readonly port: string
  /** A line from the host. */
  toController(line: string): void
  /** Calls `listener` with each line from the controller; returns its removal. Lines that nobody takes are lost. */
  onLine(listener: (line: string) => void): () => void
}

export interface WireEnds {
  wire: Wire
  /** Given to the controller as its `transmit`. */
  fromController: (line: string) => void
}

export function createWire(
  controllerId: string,
  port: string,
  controller: () => Controller,
  filters: { toHub: LineFilter; toController: LineFilter },
): WireEnds {
  const listeners = new Set<(line: string) => void>()
  return {
    wire: {
      controllerId,
      port,
      toController(line) {
        for (const arriving of filters.toController(line)) controller().receive(arriving)
      },
      onLine(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    fromController(line) {
      for (const leaving of filters.toHub(line)) for (const listener of listeners) listener(leaving)
    },
  }
}

/** Passes on the host's lines from a stream of bytes. One byte beyond the cap is for a carriage return (SPEC §1). */
export function linesFrom(stream: Readable, wire: Wire): void {
  stream.setEncoding('latin1')
  stream.on(
    'data',
    createLineSplitter(MAX_LINE_BYTES + 1, (line) => wire.toController(line)),
  )
}

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
