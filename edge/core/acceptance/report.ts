import type { AcceptanceResult } from '../../../protocol/model/acceptance.ts'
import type { AcceptanceRow, AttemptRow } from '../../journal/tables.ts'

/** The observation text of a step that was never done. */
export const NOT_DONE = 'Not done.'

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
export function resultOf(attempts: readonly AttemptRow[]): AcceptanceResult {
  const verdicts = verdictsOf(attempts)
  if (verdicts.includes('failed')) return 'failed'
  return verdicts.includes(null) ? 'incomplete' : 'passed'
}

/** The kind of a step. Steps of one kind share a heading, so that a common expectation is printed once. */
const kindOf = ({ step }: AttemptRow): string => step.split('/')[0]!

const verdictWords = { passed: 'passed', failed: 'FAILED' } as const

function attemptLine({ observed, verdict, remark }: AttemptRow): string {
  const decided = verdict === null ? '' : `${verdictWords[verdict]}. `
  return `${decided}${observed}${remark === '' ? '' : ` Remark: ${remark}`}`
}

export type Firmware = readonly { controller: string; firmware: string | null }[]

/** The protocol as text: the expectation, observation, verdict and remark of each step. */
export function reportText(
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
