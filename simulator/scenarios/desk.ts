import type { Clock, Random } from '../../protocol/model/runtime.ts'
import type { Simulator } from '../interface/client.ts'
import { type Bench, createBench } from './bench.ts'
import type { Seen } from './conditions.ts'
import { Customers } from './customers.ts'
import { doStep, valueOf } from './do-step.ts'
import { type Json, namesIn } from './placeholders.ts'
import type { Run } from './results.ts'
import type { Parameters, StepKind } from './schema.ts'
import { readScenario, readStep, writeScenario, filledStep, type Scenario, type WrittenStep } from './text.ts'
import type { Act } from '../physics/world-state.ts'
import { tidy } from './tidy.ts'

/** The runs and the recording of one simulator. */
export interface Desk {
  runs(): readonly Run[]
  /** Throws `ScenarioError` for an invalid text, `DeskError` if the hub is busy with another run. */
  start(hubId: number, text: string, given: Parameters): Run
  /** Ends a run before its next step. Returns false if it does not run. */
  stop(id: number): boolean
  /** Executes one step at once, as a person at the console. */
  doNow(hubId: number, step: Record<string, Json>): Promise<unknown>
  recording(): { hub_id: number; steps: number } | null
  record(hubId: number): Promise<void>
  /** Records an action of a person at the console. */
  note(hubId: number, kind: StepKind, what: Json): void
  finish(name: string): Promise<string>
}

/** An action that is impossible at this moment. */
export class DeskError extends Error {}

interface DeskOptions {
  clock: Clock
  random: Random
  simulator: Simulator
  demoFile: string | undefined
}

/** Number of runs with stored results. */
const KEPT_RUNS = 50

export function createDesk(options: DeskOptions): Desk {
  const { clock } = options
  const places = new Map<number, { bench: Bench; customers: Customers; now: Seen }>()
  const runs: Run[] = []
  const stopped = new Set<number>()
  let count = 0
  let recorder: (Recorder & { startedAfter: number }) | undefined

  function placeOf(hubId: number) {
    const known = places.get(hubId)
    if (known) return known
    const bench = createBench({ ...options, hubId })
    const customers = new Customers(bench)
    const now: Seen = { bench, customers, startedAfter: 0, startedAt: clock.now(), answer: undefined }
    const place = { bench, customers, now }
    places.set(hubId, place)
    return place
  }

  const isBusy = (hubId: number): boolean =>
    runs.some(({ hub_id, state }) => hub_id === hubId && state === 'running')

  return {
    runs: () => runs,
    start(hubId, text, given) {
      const scenario = readScenario(text, given)
      if (isBusy(hubId)) throw new DeskError(`a scenario runs at hub ${hubId}`)
      if (recorder?.hubId === hubId) throw new DeskError(`what is done at hub ${hubId} is being recorded`)
      const { bench, customers } = placeOf(hubId)
      const startedAt = new Date(clock.now()).toISOString()
      const run = newRun(scenario, { id: ++count, hubId, startedAt })
      runs.push(run)
      if (runs.length > KEPT_RUNS) runs.shift()
      void runScenario(scenario, run, { bench, customers, isStopped: () => stopped.has(run.id) }).finally(
        () => stopped.delete(run.id),
      )
      return run
    },
    stop(id) {
      const run = runs.find((one) => one.id === id)
      if (run?.state !== 'running') return false
      stopped.add(id)
      return true
    },
    async doNow(hubId, step) {
      const read = readStep(step)
      if (isBusy(hubId)) throw new DeskError(`a scenario runs at hub ${hubId}`)
      const { now } = placeOf(hubId)
      now.answer = undefined
      await doStep(await filled(read, now), now)
      // Steps that use the simulator's own interface are recorded there.
      if (!throughConsole.has(read.kind) && recorder?.hubId === hubId) recorder.note(read.kind, read.what)
      return now.answer ?? { status: 200 }
    },
    recording: () => (recorder ? { hub_id: recorder.hubId, steps: recorder.count() } : null),
    async record(hubId) {
      if (recorder) throw new DeskError(`hub ${recorder.hubId} is being recorded`)
      if (isBusy(hubId)) throw new DeskError(`a scenario runs at hub ${hubId}`)
      const { bench, customers } = placeOf(hubId)
      // The customers of a run begin with their first cart.
      customers.forget()
      const { last_actuation: startedAfter } = await bench.state()
      recorder = { ...createRecorder(hubId, clock), startedAfter }
    },
    note(hubId, kind, what) {
      if (recorder?.hubId === hubId) recorder.note(kind, what)
    },
    async finish(name) {
      if (!recorder) throw new DeskError('nothing is being recorded')
      const { hubId, startedAfter } = recorder
      const text = recorder.finish(name, await placeOf(hubId).bench.acts(startedAfter))
      recorder = undefined
      return text
    },
  }
}

/** Steps that the routes of the console execute. */
const throughConsole: ReadonlySet<StepKind> = new Set(['act', 'fault', 'power', 'line', 'clear'])

interface Recorder {
  readonly hubId: number
  /** Records an action that a person has just done. */
  note(kind: StepKind, what: Json): void
  /** The number of recorded actions. */
  count(): number
  /**
   * The scenario as a file: the actions, the pauses between them, and a final check that each of `acts` happened
   * exactly as often again.
   */
  finish(name: string, acts: readonly Act[]): string
}

/** Shorter pauses are not recorded. */
const LEAST_PAUSE_MS = 300

/** The condition for repeating an action, because a replay may be faster or slower than the recording. */
function neededFor(kind: StepKind, what: Json): Json | undefined {
  if (what === null || typeof what !== 'object' || Array.isArray(what)) return undefined
  const { action, target, customer } = what
  const isHandInBin = kind === 'act' && (action === 'take_items' || action === 'put_items')
  if (isHandInBin && typeof target === 'string' && target.startsWith('bin-'))
    return { device: { name: target, is: { door: 'open' } } }
  if (typeof customer !== 'string') return undefined
  if (kind === 'open') return { order: { customer, status: ['READY', 'COLLECTING'] }, within: '90 s' }
  if (kind === 'take') return { device: { name: `bin-\${bin.${customer}}`, is: { door: 'open' } } }
  return undefined
}

function createRecorder(hubId: number, clock: Clock): Recorder {
  const steps: Record<string, Json>[] = []
  let lastAt = clock.monotonic()
  let count = 0
  return {
    hubId,
    note(kind, what) {
      const pauseMs = clock.monotonic() - lastAt
      const needed = neededFor(kind, what)
      // A wait for a condition takes its own time. Without a condition the pause is needed.
      if (needed !== undefined) steps.push({ wait_until: needed })
      else if (pauseMs >= LEAST_PAUSE_MS && count > 0)
        steps.push({ wait: `${Math.round(pauseMs / 100) / 10} s` })
      steps.push({ [kind]: what })
      count += 1
      lastAt = clock.monotonic()
    },
    count: () => count,
    finish: (name, acts) =>
      writeScenario({
        name,
        description: 'Recorded at the console.',
        steps: [...steps, ...movedAgain(acts)],
      }),
  }
}

function movedAgain(acts: readonly Act[]): Record<string, Json>[] {
  const times = new Map<string, { device: string; action: string; times: number }>()
  for (const { device, action } of acts) {
    const key = `${device} ${action}`
    const motion = times.get(key) ?? { device, action, times: 0 }
    times.set(key, { ...motion, times: motion.times + 1 })
  }
  return [...times.values()].map((motion) => ({ wait_until: { motion, within: '60 s' } }))
}

/** Runs a scenario to its end, or to the first step that fails. */
async function runScenario(
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
  const seen: Seen = { bench, customers, startedAfter: 0, startedAt: clock.now(), answer: undefined }
  try {
    await tidy(bench, customers)
    if (scenario.seed !== undefined)
      await bench.simulator.ask('POST', `/api/hubs/${bench.hubId}/chance`, { seed: scenario.seed })
    seen.startedAfter = (await bench.state()).last_actuation
    seen.startedAt = clock.now()
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

async function filled(step: Pick<WrittenStep, 'kind' | 'what'>, seen: Seen) {
  const values = new Map<string, Json>()
  for (const name of namesIn(step.what)) values.set(name, await valueOf(name, seen))
  return filledStep(step, values)
}

const newRun = (scenario: Scenario, about: { id: number; hubId: number; startedAt: string }): Run => ({
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
