import type { Socket } from 'node:net'

/**
 * Follows MQTT's fixed headers (3.1.1 §2.2) through a stream of bytes, to notice a packet that is too long when its header
 * comes, before anybody collects its body.
 */
export class PacketSizes {
  readonly #maxBytes: number
  /** Bytes of the present packet's body that are still to come. */
  #body = 0
  /** The bytes of the remaining length that were read: -1 before the packet's first byte. */
  #lengthBytes = -1
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Takes the next bytes. False: a packet is longer than allowed, or its length is malformed. */
  accept(chunk: Uint8Array): boolean {
    let at = 0
    while (at < chunk.length) {
      if (this.#body > 0) {
        const step = Math.min(this.#body, chunk.length - at)
        this.#body -= step
        at += step
        continue
      }
      const byte = chunk[at++]!
      if (this.#lengthBytes < 0) {
        this.#lengthBytes = 0
        this.#length = 0
        continue
      }
      this.#length += (byte & 0x7f) * 128 ** this.#lengthBytes
      this.#lengthBytes += 1
      const isLast = byte < 0x80
      if (this.#length > this.#maxBytes || (!isLast && this.#lengthBytes === 4)) return false
      if (!isLast) continue
      this.#body = this.#length
      this.#lengthBytes = -1
    }
    return true
  }
}

/**
 * Ends a connection that sends a packet longer than `maxBytes`. It stands before the stream's buffer, so that the broker,
 * which has no such limit, never sees those bytes.
 */
export function limitPackets(socket: Socket, maxBytes: number): void {
  const sizes = new PacketSizes(maxBytes)
  const push = socket.push.bind(socket)
  socket.push = (chunk: Uint8Array | null, encoding) => {
    if (chunk === null || sizes.accept(chunk)) return push(chunk, encoding)
    socket.destroy(new Error('MQTT packet is too long'))
    return false
  }
}
