import type { Clock } from '../../protocol/model/runtime.ts'
import type { Act } from '../physics/world-state.ts'
import type { Json } from './placeholders.ts'
import type { StepKind } from './schema.ts'
import { writeScenario } from './text.ts'

export interface Recorder {
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

export function createRecorder(hubId: number, clock: Clock): Recorder {
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
