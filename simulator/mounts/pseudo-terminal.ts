import { closeSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { ReadStream } from 'node:tty'

interface NodePty {
  /** Not in node-pty's types: a pseudo-terminal without a program. Both descriptors are non-blocking. */
  native: { open(columns: number, rows: number): { master: number; slave: number; pty: string } }
}

/**
 * The far end of a serial line; a program opens the near end at `path`. The near end's descriptor stays open here, too.
 * Otherwise reads would fail with EIO whenever the program closes the port, and the pair would be lost.
 */
export class PseudoTerminal {
  readonly path: string
  /** The program's data. The line ends if the stream fails. */
  readonly input: ReadStream
  readonly #master: number
  readonly #closed: Promise<void>
  #slave: number | undefined

  constructor() {
    const { native } = createRequire(import.meta.url)('node-pty') as NodePty
    const { master, slave, pty } = native.open(80, 24)
    this.path = pty
    this.#master = master
    this.#slave = slave
    this.input = new ReadStream(master)
    this.#closed = new Promise((resolve) => this.input.once('close', () => resolve()))
    // Raw before any program opens the line: a terminal that echoes would return our own data.
    this.input.setRawMode(true)
  }

  /** The stream closes the descriptor when it ends. The same number may then belong to another file. */
  get hasEnded(): boolean {
    return this.input.destroyed
  }

  /** Returns the number of bytes that the line accepted: 0 if it has no room, or has ended. */
  write(bytes: Buffer): number {
    if (this.hasEnded) return 0
    try {
      return writeSync(this.#master, bytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
      throw error
    }
  }

  /** Hangs up; the program's port fails. */
  close(): Promise<void> {
    this.input.destroy()
    if (this.#slave !== undefined) closeSync(this.#slave)
    this.#slave = undefined
    return this.#closed
  }
}
