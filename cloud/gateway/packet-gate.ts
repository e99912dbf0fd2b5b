import type { Socket } from 'node:net'
import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import { MAX_PACKET_BYTES, PacketSizes, PacketTooLong } from '../../protocol/mqtt/packet-limit.ts'
import type { MessageAllowance } from './message-allowance.ts'

/** Maximum size of a packet before sign-in: names, password and will. */
const MAX_CONNECT_BYTES = 4096

/** The method of a stream that asks its source for bytes. */
const READ = '_read'

/**
 * The entrance of a connection to the embedded broker. A packet that is too long ends the connection at its header. The
 * packets of a hub above its allowance wait, and its connection is not read, so that nothing is lost.
 */
export class PacketGate {
  readonly #sizes = new PacketSizes(MAX_CONNECT_BYTES)
  readonly #clock: Clock
  readonly #pass: (chunk: Uint8Array | null) => boolean
  readonly #end: () => void
  #allowance: MessageAllowance | undefined
  /** Bytes from the first packet that waits. */
  #held: Uint8Array | undefined
  #hasEnded = false
  #cancel: Cancel = () => {}

  constructor(socket: Socket, { clock, onTooLong }: { clock: Clock; onTooLong: () => void }) {
    this.#clock = clock
    this.#pass = socket.push.bind(socket)
    this.#end = () => {
      onTooLong()
      socket.destroy(new PacketTooLong())
    }
    const read = socket[READ].bind(socket)
    socket.push = (chunk: Uint8Array | null) => this.#take(chunk)
    socket[READ] = (size) => {
      if (this.#held === undefined) read(size)
    }
    socket.once('close', () => this.#forget())
  }

  /** The hub has signed in: from the next packet on it has the size of messages, and this allowance. */
  signedIn(allowance: MessageAllowance): void {
    this.#sizes.allow(MAX_PACKET_BYTES)
    this.#allowance = allowance
  }

  #take(chunk: Uint8Array | null): boolean {
    if (this.#hasEnded) return false
    if (chunk !== null) return this.#passOn(this.#held ? Buffer.concat([this.#held, chunk]) : chunk)
    this.#forget()
    return this.#pass(null)
  }

  #passOn(bytes: Uint8Array): boolean {
    const taken = this.#sizes.take(bytes, () => this.#allowance?.enters() ?? true)
    if (taken === undefined) {
      this.#forget()
      this.#end()
      return false
    }
    this.#allowance?.spendBytes(taken)
    this.#held = taken < bytes.length ? bytes.subarray(taken) : undefined
    if (this.#held) this.#wait()
    const hasRoom = taken === 0 || this.#pass(bytes.subarray(0, taken))
    return hasRoom && this.#held === undefined
  }

  #wait(): void {
    this.#cancel()
    this.#cancel = this.#clock.after(this.#allowance?.waitMs() ?? 0, () => {
      if (this.#held) this.#passOn(this.#held)
    })
  }

  #forget(): void {
    this.#hasEnded = true
    this.#held = undefined
    this.#cancel()
  }
}
