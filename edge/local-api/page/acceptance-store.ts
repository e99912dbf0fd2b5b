import { computed, effect, signal } from '@preact/signals'
import type {
  AcceptanceProtocol,
  AcceptanceStepView,
  StoredAcceptance,
} from '../../../protocol/model/acceptance.ts'
import { inOrder } from '../../../protocol/ui/in-order.ts'
import { call } from '../../../protocol/ui/call-program.ts'
import { say } from '../../../protocol/ui/notices.tsx'
import { act, state, view } from './store.ts'
import { causeOf } from './texts.ts'

interface Answer {
  protocol: AcceptanceProtocol | null
  parts: string[]
  kept: StoredAcceptance[]
}

const answer = signal<Answer | null>(null)
/** An earlier protocol that a person opened. */
const older = signal<AcceptanceProtocol | null>(null)
/** The step that the technician chose. */
export const chosen = signal<string | null>(null)

export const parts = computed(() => answer.value?.parts ?? [])
export const kept = computed(() => answer.value?.kept ?? [])
/** The open acceptance; null if there is none, or if it is not loaded yet. */
export const current = computed(() =>
  answer.value?.protocol?.ended_at === null ? answer.value.protocol : null,
)
export const isKnown = computed(() => answer.value !== null)
/** The shown protocol: an earlier one, or the last one if no acceptance is open. */
export const shown = computed(() => older.value ?? answer.value?.protocol ?? null)

export const lastOf = (step: AcceptanceStepView) => step.attempts.at(-1)
export const verdictOf = (step: AcceptanceStepView) => lastOf(step)?.verdict ?? null

/** The current step: the chosen one, the running one of a chain, or the first without a verdict. */
export const step = computed(() => {
  const steps = current.value?.steps ?? []
  const wanted = chosen.value ?? state.value?.acceptance.running?.step
  return steps.find(({ id }) => id === wanted) ?? steps.find((one) => verdictOf(one) === null) ?? steps.at(-1)
})

const takeAnswer = inOrder<Answer>((loaded) => void (answer.value = loaded))
async function load(): Promise<void> {
  try {
    await takeAnswer(call('GET', 'api/acceptance'))
  } catch (error) {
    say(causeOf(error), true)
  }
}

/** Changes whenever the hub reports a new revision, which must then be loaded. */
const announced = computed(() => {
  const live = state.value?.acceptance
  return live && view.value === 'acceptance' ? `${live.id} ${live.revision}` : null
})
effect(() => {
  if (announced.value !== null) void load()
})

const takeOlder = inOrder<AcceptanceProtocol | null>((loaded) => void (older.value = loaded))
export async function read(id: string | null): Promise<void> {
  try {
    await takeOlder(id === null ? Promise.resolve(null) : call('GET', `api/acceptance/${id}`))
  } catch (error) {
    say(causeOf(error), true)
  }
}

export const begin = (by: string, of: readonly string[], withUnassignedRows: boolean): Promise<boolean> => {
  void read(null)
  chosen.value = null
  return act('Begin the acceptance', 'acceptance/begin', {
    by,
    ...(of.length > 0 && { parts: of }),
    unassigned_rows: withUnassignedRows,
  })
}

/** Steps that can run as one chain, by the beginning of their ids, with the text of its button. */
const chains: readonly [ids: RegExp, text: (count: number) => string][] = [
  [/^(?:controller|temperature)\//, (count) => `Let the hub test all ${count}, one after another`],
  [/^door\//, (count) => `Unlock the ${count} doors, one after another`],
  [/^(?:open|content)\//, () => 'Open the bins and watch their sensors, one after another'],
  // A bin closes only after the technician has stood clear of all bins.
  [/^(?:close|lift)\//, () => 'My hands are out of all bins: close them and move their lifts'],
  [/^row\/(\d+)\//, (count) => `Turn the ${count} rows of this cabinet, one after another`],
]
const chainOf = (id: string) => chains.find(([ids]) => ids.test(id))
/** The chain of a step, and for a row its cabinet. */
function groupOf(id: string): string {
  const ids = chainOf(id)?.[0]
  return ids === undefined ? id : `${ids.source} ${ids.exec(id)?.[1] ?? ''}`
}
/** The text of the button that runs the steps as a chain. */
export const chainText = (id: string, count: number): string => chainOf(id)?.[1](count) ?? ''

/** The steps in the current step's group that have no verdict. */
export const group = computed(() => {
  const inHand = step.value
  if (!inHand) return []
  return (current.value?.steps ?? []).filter(
    (one) => groupOf(one.id) === groupOf(inHand.id) && verdictOf(one) === null,
  )
})

/** The group's steps with the expected result. */
export const agreed = computed(() => group.value.filter((one) => lastOf(one)?.agrees))
/** The group's steps that have not run yet. */
export const ahead = computed(() => group.value.filter((one) => !lastOf(one)))

/** Stores the technician's verdict on these steps, and continues with the next step without a verdict. */
export async function decide(
  ids: readonly string[],
  verdict: 'passed' | 'failed',
  remark: string,
): Promise<boolean> {
  const isTaken = await act(
    verdict === 'passed' ? 'Passed' : 'Failed',
    'acceptance/decide',
    { steps: ids, verdict, remark },
    'quiet',
  )
  if (!isTaken) return false
  await load()
  chosen.value = null
  return true
}
