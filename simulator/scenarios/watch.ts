import { type Clock, sleep } from '../../protocol/model/runtime.ts'
import type { Simulator } from '../interface/client.ts'
import type { Run, StepResult } from './results.ts'

const POLL_MS = 100

/** Starts a scenario at a simulator and follows it to its end. Calls `onStep` after each step. */
export async function runAndWatch(
  { simulator, clock, isStopped }: { simulator: Simulator; clock: Clock; isStopped: () => boolean },
  request: {
    hub_id: number
    name?: string
    text?: string
    parameters?: Record<string, string | number | boolean>
  },
  onStep: (step: StepResult) => void,
): Promise<Run> {
  let run = await simulator.ask<Run>('POST', '/api/runs', request)
  let shown = 0
  let isStopping = false
  for (;;) {
    for (const step of run.steps.slice(shown)) {
      if (step.state !== 'passed' && step.state !== 'failed') break
      onStep(step)
      shown += 1
    }
    if (run.state !== 'running') return run
    if (isStopped() && !isStopping) {
      isStopping = true
      await simulator.ask('DELETE', `/api/runs/${run.id}`).catch(() => {})
    }
    await sleep(clock, POLL_MS)
    try {
      run = await simulator.ask<Run>('GET', `/api/runs/${run.id}`)
    } catch (error) {
      return { ...run, state: isStopped() ? 'stopped' : 'failed', problem: (error as Error).message }
    }
  }
}

export const stepLine = ({ state, text, endedAtMs = 0, note, problem }: StepResult): string =>
  [
    `${(endedAtMs / 1000).toFixed(1).padStart(7)} s  ${state === 'passed' ? '✓' : '✗'} ${note === undefined ? text : `${note} (${text})`}`,
    ...(problem === undefined ? [] : [`           ${problem}`]),
  ].join('\n')
