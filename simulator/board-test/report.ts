import { junitReport } from '../junit.ts'
import type { Finding } from './run.ts'

const marks: Record<Finding['state'], string> = { holds: '✓', broken: '✗', 'not asked': '–' }

export function findingLine({ rule, state, because, ms }: Finding): string {
  const line = `${marks[state]} ${String(rule.number).padStart(2)}  ${rule.title}  (${(ms / 1000).toFixed(1)} s)`
  return because === undefined
    ? line
    : `${line}\n      ${state === 'broken' ? because : `not asked: ${because}`}`
}

/** The last sentence of the report. */
export function summary(findings: readonly Finding[]): string {
  const count = (state: Finding['state']): number => findings.filter((one) => one.state === state).length
  const broken = findings.filter(({ state }) => state === 'broken').map(({ rule }) => rule.number)
  const skipped = count('not asked') > 0 ? `, ${count('not asked')} not asked` : ''
  return broken.length === 0
    ? `${count('holds')} rules hold${skipped}.`
    : `${count('holds')} rules hold${skipped}; broken: ${broken.join(', ')} (protocol/serial/SPEC.md §11).`
}

export const asJunit = (findings: readonly Finding[]): string =>
  junitReport(
    'board-test',
    findings.map(({ rule, state, because, ms }) => ({
      name: `${rule.number} ${rule.title}`,
      ms,
      failure: state === 'broken' ? because : undefined,
      skipped: state === 'not asked' ? because : undefined,
    })),
  )
