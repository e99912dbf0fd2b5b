import { decodeFrame } from '../../protocol/serial/codec.ts'

/** The hub's own limits for sales from a fridge. Milliseconds and degrees Celsius. */
export interface ColdRules {
  limitCelsius: number
  /** Without proof of cold for this long, nothing is sold. */
  healthShutoffMs: number
  /** Proof: three cold readings in a row, over at least this time. */
  proofMs: number
}

const READINGS = 3
/** A decision takes effect a little later: its command is repeated on a bad line. */
const SLACK_MS = 15_000

/**
 * Observes the reports of a fridge's controller, and judges when the hub last had proof of cold. It is milder
 * than the hub in unclear cases: gaps and single outliers do not count, and each life of the hub starts with
 * proof.
 */
export class ColdWatch {
  readonly #rules: ColdRules
  #provenAt = 0
  #run: number[] = []
  #warm = 0
  /** Dispenses for sale that started without recent proof. */
  readonly unproven: { operation_id: string; ms: number }[] = []

  constructor(rules: ColdRules) {
    this.#rules = rules
  }

  /** Called when a life of the hub starts, or when a person has checked the products. */
  trust(now: number): void {
    this.#provenAt = now
    this.#run = []
  }

  /** A line from the fridge's controller. */
  hear(line: string, now: number): void {
    const decoded = decodeFrame(line)
    if (!decoded.ok || decoded.frame.type !== 'EVT') return
    const { temp } = decoded.frame
    if (temp === undefined || temp === 'none') return
    const celsius = (temp - 10_000) / 100
    if (celsius < -45 || celsius > 60) return
    if (celsius > this.#rules.limitCelsius) {
      this.#warm += 1
      if (this.#warm > 1) this.#run = []
      return
    }
    this.#warm = 0
    this.#run.push(now)
    const isProof = this.#run.length >= READINGS && now - this.#run[0]! >= this.#rules.proofMs
    if (isProof) this.#provenAt = now
  }

  /** A unit of an order starts to be dispensed. */
  dispense(operation_id: string, now: number): void {
    const ms = now - this.#provenAt
    if (ms > this.#rules.healthShutoffMs + SLACK_MS) this.unproven.push({ operation_id, ms })
  }
}
