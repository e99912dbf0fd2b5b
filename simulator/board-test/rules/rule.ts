import type { Bench } from '../bench.ts'

/** A rule of the serial SPEC §11, with its test. */
export interface Rule {
  /** The number in SPEC §11. */
  number: number
  title: string
  /** The test cuts the power. */
  power?: true
  /** Throws `Broken` with the expectation and the observation, or `Unasked` if the rule cannot be tested here. */
  prove(bench: Bench): Promise<void>
}
