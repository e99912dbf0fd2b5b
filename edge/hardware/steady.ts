/**
 * A sensor's debounced value for reports. Contacts bounce and light barriers flicker, so a change must hold
 * before it counts. A sensor that keeps changing without holding is `unsettled`. A sensor that changes
 * repeatedly must hold for longer each time. Times are monotonic milliseconds.
 */

export interface SteadyRules {
  /** The time that a value must hold. */
  sensorHoldMs: number
  /** A sensor that has not held a value for this time is unsettled. */
  sensorUnsettledMs: number
  /** The hold doubles with each change soon after the last one, up to this time. */
  maxSensorHoldMs: number
}

/** Number of holds after the last change within which a change counts as soon. */
const SOON = 4

export class Steady<T> {
  readonly #rules: SteadyRules
  #raw: T | undefined
  /** The last value that held. */
  #held: T | undefined
  /** Start of the time in which the raw value has been undisturbed. */
  #since = -Infinity
  /** Start of the time in which the sensor has not held a value; undefined while it holds one. */
  #restlessSince: number | undefined
  #holdMs: number
  #changedAt = -Infinity

  constructor(rules: SteadyRules) {
    this.#rules = rules
    this.#holdMs = rules.sensorHoldMs
  }

  /** The newest value, held or not. */
  get newest(): T | undefined {
    return this.#raw
  }

  /** Forgets all values; the next value counts at once. */
  forget(): void {
    this.#raw = undefined
    this.#held = undefined
    this.#restlessSince = undefined
  }

  /** The sensor reads `value`. `atOnce`: the device was moved, so the change needs no debouncing. */
  note(value: T, now: number, atOnce = false): void {
    this.#settle(now)
    if (atOnce || this.#held === undefined) {
      this.#raw = value
      this.#held = value
      this.#restlessSince = undefined
      return
    }
    if (value === this.#raw) return
    this.#raw = value
    this.disturb(now)
  }

  /** The sensor has moved, whatever its value is now. */
  disturb(now: number): void {
    this.#settle(now)
    this.#since = now
    this.#restlessSince ??= now
  }

  /** The value to report; `unsettled` if there is none. Undefined before the first value. */
  value(now: number): T | 'unsettled' | undefined {
    this.#settle(now)
    if (this.#restlessSince === undefined) return this.#held
    return now - this.#restlessSince >= this.#rules.sensorUnsettledMs ? 'unsettled' : this.#held
  }

  /** Milliseconds until time alone changes `value`. */
  waitMs(now: number): number | undefined {
    this.#settle(now)
    if (this.#restlessSince === undefined) return undefined
    const holds = this.#since + this.#holdMs - now
    const unsettles = this.#restlessSince + this.#rules.sensorUnsettledMs - now
    return unsettles > 0 ? Math.min(holds, unsettles) : holds
  }

  /** Accepts a value that has held for long enough. */
  #settle(now: number): void {
    if (this.#restlessSince === undefined || now - this.#since < this.#holdMs) return
    const { sensorHoldMs, sensorUnsettledMs, maxSensorHoldMs } = this.#rules
    const settledAt = this.#since + this.#holdMs
    const wasUnsettled = settledAt - this.#restlessSince > sensorUnsettledMs
    this.#restlessSince = undefined
    if (this.#raw === this.#held && !wasUnsettled) return
    const isSoon = settledAt - this.#changedAt < SOON * this.#holdMs
    this.#holdMs = isSoon ? Math.min(this.#holdMs * 2, maxSensorHoldMs) : sensorHoldMs
    this.#changedAt = settledAt
    this.#held = this.#raw
  }
}
