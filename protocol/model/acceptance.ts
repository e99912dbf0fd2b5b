/** How an acceptance ended. `incomplete`: steps were left out, and none that was done has failed. */
export type AcceptanceResult = 'passed' | 'failed' | 'incomplete'

/** What changes of a guided acceptance while it is looked at. */
export interface AcceptanceState {
  /** Of the one that is under way. */
  id: string | null
  /** Another one whenever its protocol says something new, in this life of the hub. */
  revision: number
  /** Why nothing may move for it now; null where it may. */
  hindrance: string | null
  /** The step that is being carried out, and what was seen of it so far. */
  /** `following`: how many steps begin by themselves after it. */
  running: { step: string; seen: string[]; following: number } | null
}

/** A guided acceptance with all its steps. Instants are cloud time, milliseconds. */
export interface AcceptanceProtocol {
  id: string
  by: string
  /** The parts that it is of (`bin 2`); null for the whole hub. */
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

/** A step as people read it. */
export interface AcceptanceStepWords {
  /** The same for the same place as long as the hardware's description says the same: `open/2`, `row/1/3/4`. */
  id: string
  /** What it belongs to, and can be repeated with: `bin 2`, `cabinet 1`. */
  part: string
  title: string
  /** What the hub does, and what the technician has to do; empty where the acceptance has ended. */
  does: string
  expected: string
  /** Of the button that begins it. */
  button: string
  /** Something moves, or a lock opens: orders must be stopped. */
  moves: boolean
}

/** A step, and how it was carried out. */
export interface AcceptanceStepView extends AcceptanceStepWords {
  /** In their order; the last one counts. */
  attempts: {
    observed: string
    /** The hub saw what was expected. */
    agrees: boolean
    verdict: 'passed' | 'failed' | null
    remark: string
    at: number
  }[]
}

/** One that has ended, as a list has it. */
export interface KeptAcceptance {
  id: string
  by: string
  begun_at: number
  ended_at: number
  result: AcceptanceResult
}
