import { Socket } from 'node:net'

type Written = (error?: Error | null) => void

/**
 * A socket to a server that is told several things at once: what is written in one turn of the event loop leaves in one call of
 * the system, which costs more than a statement. Where the connection is encrypted each write leaves by itself.
 */
export class GatheringSocket extends Socket {
  #isGathering = false

  /** Only now: when it connects, a socket takes back whatever was put in the place of `write`. */
  override connect(...to: unknown[]): this {
    super.connect(...(to as Parameters<Socket['connect']>))
    this.write = this.#gather.bind(this)
    return this
  }

  #gather(chunk: Uint8Array | string, ...how: (BufferEncoding | Written | undefined)[]): boolean {
    if (!this.#isGathering) {
      this.#isGathering = true
      this.cork()
      process.nextTick(() => {
        this.#isGathering = false
        this.uncork()
      })
    }
    return super.write(chunk, ...(how as [BufferEncoding?, Written?]))
  }
}
