import type { TaskName } from '../../../protocol/contract/diag.ts'

/**
 * What is done in the background again and again. A task may be killed at any point of it: what it does is done in
 * transactions of its own, each of which leaves the rest to the next run.
 */
export interface Task {
  /** From the end of a run to the next. Milliseconds. */
  periodMs: number
  /** The ids of what it changed. */
  run(): Promise<number[]>
}

export type Tasks = Record<TaskName, Task>
