import { closeSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { ReadStream } from 'node:tty'
import { z } from 'zod'

const require = createRequire(import.meta.url)
const NodePty = z.object({
  native: z.object({
    open: z.custom<(columns: number, rows: number) => unknown>((value) => typeof value === 'function'),
  }),
})
const Opened = z.object({ master: z.int(), slave: z.int(), pty: z.string() })

/**
 * A real pseudo-terminal: a program opens the device at `path`; the methods are the other end of the line.
 */
export interface PseudoTerminal {
  path: string
  /** Resolves when the line has accepted all data. */
  write: (this: void, text: string) => Promise<void>
  /** Calls `listener` with all received data. */
  listen(listener: (text: string) => void): void
  /** Pulls the cable: the device hangs up. */
  vanish(): void
}

export function openPseudoTerminal(): PseudoTerminal {
  const { master, slave, pty } = Opened.parse(NodePty.parse(require('node-pty')).native.open(80, 24))
  const stream = new ReadStream(master)
  // Reads fail while the other end is not open, and after it closed.
  stream.on('error', () => {})
  return {
    path: pty,
    async write(text) {
      // A write to the stream would block the reader, which is in this process.
      for (let rest = Buffer.from(text, 'latin1'); rest.length > 0;) {
        rest = rest.subarray(push(master, rest))
        if (rest.length > 0) await new Promise((resolve) => void setImmediate(resolve))
      }
    },
    listen(listener) {
      stream.on('data', (chunk) => listener(chunk.toString('latin1')))
    },
    vanish() {
      stream.destroy()
      closeSync(slave)
    },
  }
}

function push(descriptor: number, bytes: Buffer): number {
  try {
    return writeSync(descriptor, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}
