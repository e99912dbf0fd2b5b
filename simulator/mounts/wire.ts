import type { Readable } from 'node:stream'
import type { Clock } from '../../protocol/model/runtime.ts'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter, type LinePort, type OpenLinePort } from '../../protocol/serial/line-port.ts'
import type { LineFilter } from '../faults/line-faults.ts'
import type { Controller } from '../board/controller.ts'

/** The end of a controller's serial line that a mount uses. */
export interface Wire {
  readonly controllerId: string
  /** `port` of the hardware description. */
  readonly port: string
  /** A line from the host. */
  toController(line: string): void
  /**
   * Calls `listener` with each line from the controller; returns a function that removes it. Without listeners lines
   * are lost.
   */
  onLine(listener: (line: string) => void): () => void
}

/** A line that can be watched, and on which a caller can send in the controller's place. */
export interface WatchedWire extends Wire {
  /** Sends a line as if from the controller; line faults do not affect it. */
  toHub(line: string): void
  /** Calls `listener` with each line that either end sends; returns a function that removes it. */
  readonly onTraffic: (listener: (passed: Passed) => void) => () => void
}

export interface Passed {
  direction: 'to_hub' | 'to_controller'
  line: string
  /** The lines at the other end: changed or missing if a fault struck. */
  arrived: readonly string[]
}

interface WireEnds {
  wire: WatchedWire
  /** The controller's `transmit`. */
  fromController: (line: string) => void
}

export function createWire(
  controllerId: string,
  port: string,
  controller: () => Controller,
  filters: { toHub: LineFilter; toController: LineFilter },
): WireEnds {
  const listeners = new Set<(line: string) => void>()
  const watchers = new Set<(passed: Passed) => void>()
  const report = (passed: Passed): void => {
    for (const watcher of watchers) watcher(passed)
  }
  const deliver = (line: string): void => {
    for (const listener of listeners) listener(line)
  }
  return {
    wire: {
      controllerId,
      port,
      toController(line) {
        const arrived = filters.toController(line)
        report({ direction: 'to_controller', line, arrived })
        for (const arriving of arrived) controller().receive(arriving)
      },
      onLine(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      toHub(line) {
        report({ direction: 'to_hub', line, arrived: [line] })
        deliver(line)
      },
      onTraffic(watcher) {
        watchers.add(watcher)
        return () => void watchers.delete(watcher)
      },
    },
    fromController(line) {
      const arrived = filters.toHub(line)
      report({ direction: 'to_hub', line, arrived })
      for (const leaving of arrived) deliver(leaving)
    },
  }
}

/** Passes on the host's lines from a stream of bytes. One byte above the limit is for a carriage return (SPEC §1). */
export function linesFrom(stream: Readable, wire: Wire): void {
  stream.setEncoding('latin1')
  stream.on(
    'data',
    createLineSplitter(MAX_LINE_BYTES + 1, (line) => wire.toController(line)),
  )
}

interface InProcessOptions {
  clock: Clock
  /** Latency of a line in milliseconds, computed for each line. Lines of one direction never overtake each other. */
  latencyMs: () => number
}

/**
 * The serial lines of a simulated hub within one process. Lines written before a port was closed still arrive, like
 * bytes in an adapter's buffer.
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
