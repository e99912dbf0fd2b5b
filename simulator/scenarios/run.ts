import type { Bench } from './bench.ts'
import type { Seen } from './conditions.ts'
import type { Customers } from './customers.ts'
import { doStep, valueOf } from './do-step.ts'
import { type Json, namesIn } from './placeholders.ts'
import type { Run } from './results.ts'
import { filledStep, type Scenario, type WrittenStep } from './text.ts'
import { tidy } from './tidy.ts'

/** Runs a scenario to its end, or to the first step that fails. */
export async function runScenario(
  scenario: Scenario,
  run: Run,
  { bench, customers, isStopped }: { bench: Bench; customers: Customers; isStopped: () => boolean },
): Promise<void> {
  const { clock } = bench
  const startedAt = clock.monotonic()
  const sinceStart = (): number => Math.round(clock.monotonic() - startedAt)
  const end = (state: Run['state'], problem?: string): void => {
    run.state = state
    run.durationMs = sinceStart()
    if (problem !== undefined) run.problem = problem
  }
  customers.forget()
  const seen: Seen = { bench, customers, begunAfter: 0, begunAt: clock.now(), answer: undefined }
  try {
    await tidy(bench, customers)
    if (scenario.seed !== undefined)
      await bench.simulator.ask('POST', `/api/hubs/${bench.hubId}/chance`, { seed: scenario.seed })
    seen.begunAfter = (await bench.state()).last_actuation
    seen.begunAt = clock.now()
  } catch (error) {
    return end('failed', (error as Error).message)
  }
  const [state, problem] = await runSteps(scenario, run, seen, { sinceStart, isStopped })
  await restore(scenario, bench)
  end(state, problem)
}

/** Restores the lines and programs that a scenario stopped, however it ended. */
async function restore({ steps }: Scenario, bench: Bench): Promise<void> {
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch {
      // The next scenario tries again and reports the problem.
    }
  }
  if (steps.some(({ kind }) => kind === 'network')) await attempt(() => bench.demo().network('back'))
  if (steps.some(({ kind }) => kind === 'program'))
    for (const name of ['cloud', 'edge'] as const) await attempt(() => bench.demo().program(name, 'start'))
}

async function runSteps(
  scenario: Scenario,
  run: Run,
  seen: Seen,
  { sinceStart, isStopped }: { sinceStart: () => number; isStopped: () => boolean },
): Promise<[state: Run['state'], problem?: string]> {
  for (const [index, step] of scenario.steps.entries()) {
    if (isStopped()) return ['stopped']
    const result = run.steps[index]!
    result.state = 'running'
    try {
      await doStep(await filled(step, seen), seen)
      result.state = 'passed'
      result.endedAtMs = sinceStart()
    } catch (error) {
      const problem = (error as Error).message
      Object.assign(result, { state: 'failed', endedAtMs: sinceStart(), problem })
      return ['failed', `step ${index + 1} (line ${step.line}), ${result.text}: ${problem}`]
    }
  }
  return [isStopped() ? 'stopped' : 'passed']
}

export async function filled(step: Pick<WrittenStep, 'kind' | 'what'>, seen: Seen) {
  const values = new Map<string, Json>()
  for (const name of namesIn(step.what)) values.set(name, await valueOf(name, seen))
  return filledStep(step, values)
}

export const newRun = (scenario: Scenario, about: { id: number; hubId: number; startedAt: string }): Run => ({
  id: about.id,
  hub_id: about.hubId,
  name: scenario.name,
  state: 'running',
  started_at: about.startedAt,
  steps: scenario.steps.map(({ kind, what, note, line }) => ({
    text: `${kind} ${wordsOf(what)}`,
    ...(note !== undefined && { note }),
    line,
    state: 'waiting',
  })),
})

/** A step's content for people: `device name bin-1, is door open`. */
function wordsOf(value: Json): string {
  if (value === null || typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.map(wordsOf).join(' and ')
  return Object.entries(value)
    .map(([key, each]) => `${key} ${wordsOf(each)}`)
    .join(', ')
}
