/** What callers and the page read of scenarios and their runs. */

export interface StepResult {
  /** In words, as the file has it. */
  text: string
  note?: string
  line: number
  state: 'waiting' | 'running' | 'passed' | 'failed'
  /** Since the run began, when it ended. */
  endedAtMs?: number
  /** Why it failed. */
  problem?: string
}

/** A run, as it stands. It is changed in place while it goes on. */
export interface Run {
  id: number
  hub_id: number
  name: string
  state: 'running' | 'passed' | 'failed' | 'stopped'
  started_at: string
  durationMs?: number
  /** What went wrong before the first step, or at one. */
  problem?: string
  steps: StepResult[]
}

/** A scenario that is there, for a list. */
export interface Listed {
  name: string
  /** Of the library that comes with the simulator, or made here. */
  source: 'library' | 'own'
  description: string
  parameters: Record<string, string | number | boolean>
  /** Why it cannot be run. */
  problems?: readonly string[]
}
