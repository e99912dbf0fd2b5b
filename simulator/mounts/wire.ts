import type { Readable } from 'node:stream'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter } from '../../protocol/serial/line-port.ts'
import type { Controller } from '../firmware/controller.ts'
import type { LineFilter } from '../faults/line-faults.ts'

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
