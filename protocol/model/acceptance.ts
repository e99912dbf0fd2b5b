/** How an acceptance ended. `incomplete`: no step failed, but some steps were left out. */
export type AcceptanceResult = 'passed' | 'failed' | 'incomplete'

/** The part of a guided acceptance that changes while it runs. */
export interface AcceptanceState {
  /** The acceptance that runs now; null if none does. */
  id: string | null
  /** Changes whenever the acceptance's record changes, within one life of the hub. */
  revision: number
  /** Why no step may move anything now; null if steps may. */
  hindrance: string | null
  /** The step that runs now, and the observations so far. */
  /** `following`: how many steps begin automatically after it. */
  running: { step: string; seen: string[]; following: number } | null
}

/** A guided acceptance with all its steps. Instants are cloud time, milliseconds. */
export interface AcceptanceProtocol {
  id: string
  by: string
  /** The parts that it covers (`bin 2`); null for the whole hub. */
  parts: string[] | null
  /** How many rows without a product were left out. */
  left_out: number
  software: string
  firmware: { controller: string; firmware: string | null }[]
  begun_at: number
  ended_at: number | null
  result: AcceptanceResult | null
  steps: AcceptanceStepView[]
}

/** The texts of a step. */
export interface AcceptanceStepText {
  /** Stable while the hardware's description is unchanged: `open/2`, `row/1/3/4`. */
  id: string
  /** The part that the step belongs to. A technician can repeat the steps of one part: `bin 2`, `cabinet 1`. */
  part: string
  title: string
  /** The hub's action and the technician's task; empty after the acceptance has ended. */
  does: string
  expected: string
  /** The label of the button that begins the step. */
  button: string
  /** Something moves, or a lock opens: orders must be stopped. */
  moves: boolean
}

/** A step and its attempts. */
export interface AcceptanceStepView extends AcceptanceStepText {
  /** In order; the last one counts. */
  attempts: {
    observed: string
    /** The hub's observation matches the expected one. */
    agrees: boolean
    verdict: 'passed' | 'failed' | null
    remark: string
    at: number
  }[]
}

/** An ended acceptance, as a list shows it. */
export interface StoredAcceptance {
  id: string
  by: string
  begun_at: number
  ended_at: number
  result: AcceptanceResult
}
