/** The maximum length of an MQTT packet without its fixed header, in bytes (SPEC §8). */
export const MAX_PACKET_BYTES = 1024 * 1024

/**
 * Parses MQTT's fixed headers (3.1.1 §2.2) in a stream of bytes. So a packet that is too long is noticed at its header,
 * before its body fills memory.
 */
export class PacketSizes {
  #maxBytes: number
  /** Bytes of the present packet's body that have not arrived. */
  #body = 0
  /** Number of bytes read of the remaining length; -1 before the packet's first byte. */
  #lengthBytes = -1
  #length = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Sets the limit from the next packet on. */
  allow(maxBytes: number): void {
    this.#maxBytes = maxBytes
  }

  /** Takes the next bytes. Returns false if a packet is longer than allowed or its length is malformed. */
  accept(chunk: Uint8Array): boolean {
    return this.take(chunk, () => true) !== undefined
  }

  /**
   * Takes the next bytes up to the first packet that may not begin yet. Returns their number, or undefined if a packet
   * is longer than allowed or its length is malformed.
   */
  take(chunk: Uint8Array, mayBegin: () => boolean): number | undefined {
    let at = 0
    while (at < chunk.length) {
      if (this.#body > 0) {
        const step = Math.min(this.#body, chunk.length - at)
        this.#body -= step
        at += step
        continue
      }
      if (this.#lengthBytes < 0 && !mayBegin()) return at
      const byte = chunk[at++]!
      if (this.#lengthBytes < 0) {
        this.#lengthBytes = 0
        this.#length = 0
        continue
      }
      this.#length += (byte & 0x7f) * 128 ** this.#lengthBytes
      this.#lengthBytes += 1
      const isLast = byte < 0x80
      if (this.#length > this.#maxBytes || (!isLast && this.#lengthBytes === 4)) return undefined
      if (!isLast) continue
      this.#body = this.#length
      this.#lengthBytes = -1
    }
    return at
  }
}

/** The used parts of a Node socket. */
interface Readable {
  push(chunk: Uint8Array | null, encoding?: BufferEncoding): boolean
  destroy(error?: Error): unknown
}

/**
 * Ends a connection at the header of a packet longer than `maxBytes`. It works before the stream's buffer, so no reader
 * gets those bytes and no buffer grows. `onExceeded` is called once, before the end.
 */
export function limitPackets(
  socket: Readable,
  maxBytes = MAX_PACKET_BYTES,
  onExceeded?: () => void,
): PacketSizes {
  const sizes = new PacketSizes(maxBytes)
  const push = socket.push.bind(socket)
  let hasExceeded = false
  socket.push = (chunk, encoding) => {
    if (hasExceeded) return false
    if (chunk === null || sizes.accept(chunk)) return push(chunk, encoding)
    hasExceeded = true
    onExceeded?.()
    socket.destroy(new PacketTooLong())
    return false
  }
  return sizes
}

/** The peer announced a packet above the limit of SPEC §8. */
export class PacketTooLong extends Error {
  override readonly name = 'PacketTooLong'
  /** mqtt.js reports only errors with a code. */
  readonly code = 'MQTT_PACKET_TOO_LONG'
  constructor() {
    super('the other end announced an MQTT packet above the limit of 1 MiB')
  }
}
