/** The results of scenarios for callers and the page. */

export interface StepResult {
  /** The step in words. */
  text: string
  note?: string
  line: number
  state: 'waiting' | 'running' | 'passed' | 'failed'
  /** Milliseconds from the start of the run to the end of the step. */
  endedAtMs?: number
  problem?: string
}

/** A run. It is changed in place while it continues. */
export interface Run {
  id: number
  hub_id: number
  name: string
  state: 'running' | 'passed' | 'failed' | 'stopped'
  started_at: string
  durationMs?: number
  /** The problem before the first step or at a step. */
  problem?: string
  steps: StepResult[]
}

/** A scenario in a list. */
export interface Listed {
  name: string
  /** The library of the simulator, or the user's own. */
  source: 'library' | 'own'
  description: string
  parameters: Record<string, string | number | boolean>
  /** The reasons why it cannot be run. */
  problems?: readonly string[]
}
