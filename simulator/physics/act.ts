/** What the world writes down: the witness of every test of I1. Its state is the fold of these records, nothing else. */

/** Where a mechanism stands. `between`: neither end (stopped or jammed on the way). */
export type DoorPosition = 'closed' | 'open' | 'between'
export type LiftPosition = 'up' | 'down' | 'between'

/** Units of one facing, as they are loaded at the beginning. */
export interface LoadedRow {
  cabinet: number
  shelf: number
  row: number
  product_id: number | null
  units: number
}

export type ActDetail = Record<string, string | number | boolean | null>

/**
 * One motion that really happened, by a motor, a falling unit, or a hand. Written when its effect takes place; `n` counts
 * from 1 without a gap. At most one act bears a given `operation_id`.
 */
export interface Act {
  n: number
  /** ISO 8601, by the world's clock. */
  at: string
  /** `bin-1`, `cabinet-2`, `fridge-1`, or a door: `main`, `fridge_1_left`. */
  device: string
  action: string
  operation_id?: string
  detail: ActDetail
}

/** A motor was switched on. Where no act follows before the process dies, the motion was cut there. */
export interface Beginning {
  device: string
  action: string
  operation_id: string
  detail: ActDetail
}

export type WorldRecord =
  { kind: 'loaded'; rows: LoadedRow[] } | { kind: 'began'; motion: Beginning } | { kind: 'act'; act: Act }
