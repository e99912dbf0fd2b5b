import { PseudoTerminal as Line } from '../../../simulator/mounts/pseudo-terminal.ts'

/**
 * A real pseudo-terminal: a program opens the device at `path`; the methods are the other end of the line.
 */
export interface PseudoTerminal {
  path: string
  /** Resolves when the line has accepted all data. Rejects if the device hung up. */
  write: (this: void, text: string) => Promise<void>
  /** Calls `listener` with all received data. */
  listen(listener: (text: string) => void): void
  /** Pulls the cable: the device hangs up. */
  vanish: (this: void) => void
}

export function openPseudoTerminal(): PseudoTerminal {
  const line = new Line()
  // The test sees that the device hung up.
  line.input.on('error', () => {})
  return {
    path: line.path,
    async write(text) {
      for (let rest = Buffer.from(text, 'latin1'); rest.length > 0;) {
        if (line.hasEnded) throw new Error('the device hung up')
        rest = rest.subarray(line.write(rest))
        if (rest.length > 0) await new Promise((resolve) => void setImmediate(resolve))
      }
    },
    listen(listener) {
      line.input.on('data', (chunk) => listener(chunk.toString('latin1')))
    },
    vanish: () => void line.close(),
  }
}
