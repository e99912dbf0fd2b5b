import type {
  AcceptanceProtocol,
  AcceptanceStepText,
  AcceptanceResult,
} from '../../../protocol/model/acceptance.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { locationKey } from '../../../protocol/model/location.ts'
import { HUB_SUBJECT } from '../../../protocol/model/subject.ts'
import type { AcceptanceRow, AttemptRow } from '../../journal/tables.ts'
import type { LocalActor } from '../../../protocol/mqtt/hub-entries.ts'
import type { Context } from '../context.ts'
import { reportLocal } from '../ledger.ts'
import { judge, observedText, type Observation } from './observation.ts'
import { stepsOf, type AcceptanceStep } from './steps.ts'

/** The steps of an acceptance that has not ended. */
export function stepsNow({ hardware }: Context, row: AcceptanceRow): AcceptanceStep[] {
  const { parts, left_out } = row
  return stepsOf(hardware).filter(({ id, part }) => (parts?.includes(part) ?? true) && !left_out.includes(id))
}

/** The steps of rows without a product. Empty if the planogram is empty: then all rows must be tested. */
export function unassignedRows({ hardware, state }: Context): string[] {
  const assigned = new Set(state.stock.facings.all().map((facing) => locationKey(facing)))
  if (assigned.size === 0) return []
  return stepsOf(hardware).flatMap(({ id, check }) =>
    check.of === 'row' && !assigned.has(locationKey(check.location)) ? [id] : [],
  )
}

const firmwareNow = ({ controllers }: Context): Firmware =>
  controllers.links().map(({ controller, firmware }) => ({ controller, firmware }))

/** The protocol of an acceptance. Without an id: of the open acceptance, or else of the last one. */
export function protocolOf(context: Context, id?: string): AcceptanceProtocol | null {
  const { acceptances } = context.state
  const row = id === undefined ? (acceptances.open() ?? acceptances.list()[0]) : acceptances.find(id)
  if (!row) return null
  const attempts = acceptances.attemptsOf(row.id)
  const attemptsOf = (step: string) =>
    attempts
      .filter((attempt) => attempt.step === step)
      .map(({ observed, agrees, verdict, remark, at }) => ({ observed, agrees, verdict, remark, at }))
  const steps = row.ended_at === null ? stepsNow(context, row) : stepsOfEnded(attempts)
  const firmware = row.firmware ?? firmwareNow(context)
  const { by, software, begun_at, ended_at, result } = row
  return {
    id: row.id,
    by,
    parts: row.parts && [...row.parts],
    left_out: row.left_out.length,
    software,
    firmware: [...firmware],
    begun_at,
    ended_at,
    result,
    steps: steps.map(({ id: step, part, title, does, expected, button, moves }) => ({
      id: step,
      part,
      title,
      does,
      expected,
      button,
      moves,
      attempts: attemptsOf(step),
    })),
  }
}

/** The steps as they were when the acceptance ended. The hardware description may have changed since. */
function stepsOfEnded(attempts: readonly AttemptRow[]): AcceptanceStepText[] {
  const steps = new Map(attempts.map((attempt) => [attempt.step, attempt]))
  return [...steps.values()]
    .toSorted((a, b) => a.position - b.position)
    .map(({ step: id, part, title, expected }) => ({
      id,
      part,
      title,
      expected,
      does: '',
      button: '',
      moves: false,
    }))
}

/** Begins the acceptance of these parts; null means the whole hub. Returns false if the disk is full. */
export function beginProtocol(
  context: Context,
  { name, parts, leftOut }: { name: string; parts: readonly string[] | null; leftOut: readonly string[] },
  by?: LocalActor,
): boolean {
  const { state, runtime, cloud, software, handle } = context
  return handle(() => {
    state.acceptances.add({
      id: uuidv7(runtime),
      by: name,
      parts,
      left_out: leftOut,
      software,
      begun_at: cloud.now(),
    })
    reportLocal(context, 'begin_acceptance', HUB_SUBJECT, { by })
  })
}

/** Stores the observation of a step as an attempt. */
export function addAttempt(context: Context, step: AcceptanceStep, observation: Observation): void {
  const { state, cloud, log, handle } = context
  const row = state.acceptances.open()
  if (!row) return
  const isTaken = handle(() =>
    state.acceptances.attempts.add({
      acceptance_id: row.id,
      ...placeOf(context, row, step),
      observed: observedText(step.check, observation),
      agrees: judge(step.check, observation).agrees,
      at: cloud.now(),
    }),
  )
  if (!isTaken) log.error({ step: step.id }, 'what was seen of a step could not be kept: the disk is full')
}

function placeOf(context: Context, row: AcceptanceRow, { id, part, title, expected }: AcceptanceStep) {
  const position = stepsNow(context, row).findIndex((each) => each.id === id)
  return { step: id, position, part, title, expected }
}

/** Ends the acceptance. Steps without an attempt are stored as not done. Returns false if the disk is full. */
export function endProtocol(context: Context, row: AcceptanceRow, by?: LocalActor): boolean {
  const { state, cloud, handle } = context
  const firmware = firmwareNow(context)
  return handle(() => {
    const at = cloud.now()
    const tried = new Set(state.acceptances.attemptsOf(row.id).map(({ step }) => step))
    for (const step of stepsNow(context, row))
      if (!tried.has(step.id))
        state.acceptances.attempts.add({
          acceptance_id: row.id,
          ...placeOf(context, row, step),
          observed: NOT_DONE,
          agrees: false,
          at,
        })
    const result = resultOf(state.acceptances.attemptsOf(row.id))
    state.acceptances.change(row.id, { result, firmware, ended_at: at })
    reportAcceptance(context, row.id)
    reportLocal(context, 'end_acceptance', HUB_SUBJECT, { by })
  })
}

/** Reports an ended acceptance in the current transaction. The cloud deduplicates by `report_id`. */
export function reportAcceptance({ state, hardware, ledger }: Context, id: string): void {
  const row = state.acceptances.find(id)
  if (!row || row.ended_at === null || row.result === null) return
  const attempts = state.acceptances.attemptsOf(id)
  const firmware = row.firmware ?? []
  ledger.report({
    kind: 'maintenance.report',
    report_id: id,
    name:
      row.parts === null
        ? `Acceptance of hub ${hardware.hubId}`
        : `Acceptance of parts of hub ${hardware.hubId}`,
    submitted_by: row.by,
    service_type: 'Commissioning',
    started_at: row.begun_at,
    ended_at: row.ended_at,
    hub_tested: row.result,
    description: reportText(row, firmware, attempts),
    components_serviced: [...new Set(attempts.map(({ part }) => part))].slice(0, 100),
  })
}

/** The observation text of a step that was never done. */
const NOT_DONE = 'Not done.'

/** The attempts of each step, in the order of the steps. The last attempt counts. */
function bySteps(attempts: readonly AttemptRow[]): AttemptRow[][] {
  const steps = new Map<string, AttemptRow[]>()
  for (const attempt of attempts.toSorted((a, b) => a.position - b.position || a.number - b.number))
    steps.set(attempt.step, [...(steps.get(attempt.step) ?? []), attempt])
  return [...steps.values()]
}

const verdictsOf = (attempts: readonly AttemptRow[]): AttemptRow['verdict'][] =>
  bySteps(attempts).map((each) => each.at(-1)!.verdict)

/** `attempts`: at least one for each step. */
function resultOf(attempts: readonly AttemptRow[]): AcceptanceResult {
  const verdicts = verdictsOf(attempts)
  if (verdicts.includes('failed')) return 'failed'
  return verdicts.includes(null) ? 'incomplete' : 'passed'
}

/** The kind of a step. Steps of one kind share a heading, so that a common expectation is printed once. */
const kindOf = ({ step }: AttemptRow): string => step.split('/')[0]!

const verdictText = { passed: 'passed', failed: 'FAILED' } as const

function attemptLine({ observed, verdict, remark }: AttemptRow): string {
  const decided = verdict === null ? '' : `${verdictText[verdict]}. `
  return `${decided}${observed}${remark === '' ? '' : ` Remark: ${remark}`}`
}

type Firmware = readonly { controller: string; firmware: string | null }[]

/** The protocol as text: the expectation, observation, verdict and remark of each step. */
function reportText(
  { by, software, left_out }: Pick<AcceptanceRow, 'by' | 'software' | 'left_out'>,
  firmware: Firmware,
  attempts: readonly AttemptRow[],
): string {
  const verdicts = verdictsOf(attempts)
  const count = (wanted: AttemptRow['verdict']): number =>
    verdicts.filter((verdict) => verdict === wanted).length
  const versions = firmware.map((one) => `${one.controller} ${one.firmware ?? 'unknown'}`).join(', ')
  const lines = [
    `Result: ${resultOf(attempts)}. ${count('passed')} steps passed, ${count('failed')} failed, ${count(null)} not done.`,
    `By ${by}. Software ${software}. Firmware: ${versions}.`,
  ]
  if (left_out.length > 0) lines.push(`${left_out.length} rows without a product were left out.`)
  const steps = bySteps(attempts)
  for (const kind of new Set(attempts.toSorted((a, b) => a.position - b.position).map(kindOf))) {
    const alike = steps.filter(([first]) => kindOf(first!) === kind)
    const expectations = new Set(alike.map((each) => each.at(-1)!.expected))
    const isOne = expectations.size === 1
    const heading = `${kind[0]!.toUpperCase()}${kind.slice(1)}`
    lines.push('', isOne ? `${heading}. Expected: ${[...expectations][0]}` : heading)
    for (const each of alike)
      for (const [index, attempt] of each.entries()) {
        const expected = isOne ? '' : ` Expected: ${attempt.expected}`
        lines.push(`- ${attempt.title}${index > 0 ? ', again' : ''}: ${attemptLine(attempt)}${expected}`)
      }
  }
  const text = lines.join('\n')
  return text.length <= MOST_CHARS ? text : `${text.slice(0, MOST_CHARS - REST.length)}${REST}`
}

/** The maximum length in the ledger entry (`hub-entries.ts`). */
const MOST_CHARS = 60_000
const REST = '\n… The whole protocol is kept at the hub.'
