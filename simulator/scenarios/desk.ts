import type { Clock, Random } from '../../protocol/model/runtime.ts'
import type { Simulator } from '../interface/client.ts'
import { type Bench, createBench } from './bench.ts'
import type { Seen } from './conditions.ts'
import { Customers } from './customers.ts'
import { doStep } from './do-step.ts'
import type { Json } from './placeholders.ts'
import { createRecorder, type Recorder } from './recorder.ts'
import type { Run } from './results.ts'
import { filled, newRun, runScenario } from './run.ts'
import type { Parameters, StepKind } from './schema.ts'
import { readScenario, readStep } from './text.ts'

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

export interface DeskOptions {
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
  let recorder: (Recorder & { begunAfter: number }) | undefined

  function placeOf(hubId: number) {
    const known = places.get(hubId)
    if (known) return known
    const bench = createBench({ ...options, hubId })
    const customers = new Customers(bench)
    const now: Seen = { bench, customers, begunAfter: 0, begunAt: clock.now(), answer: undefined }
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
      const { last_actuation: begunAfter } = await bench.state()
      recorder = { ...createRecorder(hubId, clock), begunAfter }
    },
    note(hubId, kind, what) {
      if (recorder?.hubId === hubId) recorder.note(kind, what)
    },
    async finish(name) {
      if (!recorder) throw new DeskError('nothing is being recorded')
      const { hubId, begunAfter } = recorder
      const text = recorder.finish(name, await placeOf(hubId).bench.acts(begunAfter))
      recorder = undefined
      return text
    },
  }
}

/** Steps that the routes of the console execute. */
const throughConsole: ReadonlySet<StepKind> = new Set(['act', 'fault', 'power', 'line', 'clear'])
