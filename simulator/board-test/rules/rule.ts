import type { Bench } from '../bench.ts'

/** A rule of the serial SPEC §11, and how it is proved. */
export interface Rule {
  /** As SPEC §11 numbers it. */
  number: number
  title: string
  /** Its proof cuts the power. */
  power?: true
  /** Throws `Broken` with what was expected and seen, `Unasked` where it cannot be asked. */
  prove(bench: Bench): Promise<void>
}
