import type { OpenTransport, TransportHandlers, TransportOptions } from '../../../protocol/mqtt/transport.ts'
import type { VirtualClock } from '../../world/clock.ts'

interface End {
  options: TransportOptions
  handlers: TransportHandlers
  open: boolean
  /** A packet was dropped: TCP waits for it, and sends nothing after it. */
  isStuck?: boolean
}

/** Faults of the line for each message. */
export interface Weather {
  copies(): number
  delayMs(): number
}
export const calm: Weather = { copies: () => 1, delayMs: () => 1 }

/** A broker with one hub, in memory. It loses, repeats and delays messages according to its faults. */
export class Line {
  readonly #clock: VirtualClock
  #end: End | undefined
  weather: Weather = calm
  /** Speed of a slow line from the hub: messages queue one after another. */
  rate: { bytesPerMs: number; delayMs: number } | undefined
  /** Larger packets from the hub are dropped, and the connection ends after `deadMs`. */
  narrow: { bytes: number; deadMs: number } | undefined
  /** Whether messages of a topic pass at any size. */
  passes: (topic: string) => boolean = () => false
  /** Bytes that the hub has sent. */
  sentBytes = 0
  #freeMs = 0
  /** Whether connections succeed; otherwise they fail with `reason`. */
  up = true
  reason = 'unreachable'
  connections = 0
  wills: string[] = []
  onUp: (topic: string, payload: string, retain: boolean) => void = () => {}

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  /** The transport of one life of the hub; `isAlive` returns whether it may still be called. */
  transportFor(isAlive: () => boolean): OpenTransport {
    return (options, handlers) => {
      const end: End = { options, handlers, open: false }
      this.#clock.after(1, () => {
        if (!isAlive()) return
        if (!this.up) return handlers.onDisconnect(this.reason)
        end.open = true
        this.#end = end
        this.connections++
        handlers.onConnect()
      })
      return {
        publish: (topic, payload, { retain = false } = {}) => {
          if (end.open && !this.#isDropped(end, topic, payload)) this.#carryUp(topic, payload, retain)
          return Promise.resolve(end.open)
        },
        close: () => {
          end.open = false
        },
      }
    }
  }

  toHub(topic: string, payload: string): void {
    const end = this.#end
    this.#carry(() => {
      if (end?.open) end.handlers.onMessage(topic, payload)
    })
  }

  /** Ends the connection like a cut cable. */
  cut(reason = 'cut'): void {
    const end = this.#end
    this.#end = undefined
    if (!end?.open) return
    end.open = false
    if (end.options.will) this.wills.push(end.options.will.payload)
    end.handlers.onDisconnect(reason)
  }

  /** The hub's process is gone, and nothing is delivered to it. */
  abandon(): void {
    if (this.#end) this.#end.open = false
    this.#end = undefined
  }

  #isDropped(end: End, topic: string, payload: string): boolean {
    const { narrow } = this
    const isLarge = narrow !== undefined && Buffer.byteLength(payload) > narrow.bytes && !this.passes(topic)
    if (!end.isStuck && narrow && isLarge) {
      end.isStuck = true
      this.#clock.after(narrow.deadMs, () => {
        if (this.#end === end) this.cut('keep-alive timeout')
      })
    }
    return end.isStuck === true
  }

  #carryUp(topic: string, payload: string, retain: boolean): void {
    const deliver = (): void => this.onUp(topic, payload, retain)
    this.sentBytes += Buffer.byteLength(payload)
    if (!this.rate) return this.#carry(deliver)
    const { bytesPerMs, delayMs } = this.rate
    const now = this.#clock.monotonic()
    this.#freeMs = Math.max(now, this.#freeMs) + Buffer.byteLength(payload) / bytesPerMs
    this.#clock.after(this.#freeMs - now + delayMs, deliver)
  }

  #carry(deliver: () => void): void {
    for (let copy = this.weather.copies(); copy > 0; copy--)
      this.#clock.after(this.weather.delayMs(), deliver)
  }
}
