import type { OpenTransport, TransportHandlers, TransportOptions } from '../../../protocol/mqtt/transport.ts'
import type { VirtualClock } from '../../support/virtual-clock.ts'

interface End {
  options: TransportOptions
  handlers: TransportHandlers
  open: boolean
  /** A packet was dropped: TCP waits for it, and nothing goes up behind it. */
  isStuck?: boolean
}

/** What the line does with each message. */
export interface Weather {
  copies(): number
  delayMs(): number
}
export const calm: Weather = { copies: () => 1, delayMs: () => 1 }

/** A broker with one hub on it, in memory: it loses, repeats and delays as its weather says. */
export class Line {
  readonly #clock: VirtualClock
  #end: End | undefined
  weather: Weather = calm
  /** Of the hub's way up, where that is slow: one message goes behind the other. */
  rate: { bytesPerMs: number; delayMs: number } | undefined
  /** Packets above so many bytes are dropped on the way up, and the connection ends after `deadMs`. */
  narrow: { bytes: number; deadMs: number } | undefined
  /** Whether messages of a topic pass it whatever their size. */
  passes: (topic: string) => boolean = () => false
  /** What the hub has sent. */
  sentBytes = 0
  #freeMs = 0
  /** Whether connections succeed; `reason` if not. */
  up = true
  reason = 'unreachable'
  connections = 0
  wills: string[] = []
  onUp: (topic: string, payload: string, retain: boolean) => void = () => {}

  constructor(clock: VirtualClock) {
    this.#clock = clock
  }

  /** For one life of the hub: `isAlive` tells whether it can still be called. */
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

  /** Ends the connection as a cut cable does. */
  cut(reason = 'cut'): void {
    const end = this.#end
    this.#end = undefined
    if (!end?.open) return
    end.open = false
    if (end.options.will) this.wills.push(end.options.will.payload)
    end.handlers.onDisconnect(reason)
  }

  /** The hub's process is gone; nobody hears what comes for it. */
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
