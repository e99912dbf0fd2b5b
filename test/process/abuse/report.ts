import type { AbuseOutcome } from './run-abuse.ts'
import { table } from '../chaos/report.ts'

/** The result of a run of abuse, for people. */
export function reportOf(outcome: AbuseOutcome, minutes: number): string {
  const { who, visits, samples, unanswered, rows, bytes, lost, tally, honest, lies, violations } = outcome
  const ends = new Map<string, number>()
  for (const { end } of visits) ends.set(end, (ends.get(end) ?? 0) + 1)
  const goods = visits.filter(({ end }) => end === 'COMPLETED').map(({ ms }) => ms / 1000)
  const closed = samples.filter(({ takesOrders }) => !takesOrders).length
  return [
    `${who}: ${minutes} minutes, ${tally.of('answer ').reduce((sum, [, count]) => sum + count, 0)} calls`,
    `honest customers: ${[...ends].map(([end, count]) => `${end} ${count}`).join(', ')}`,
    `from the first call to the goods, seconds: ${spread(goods)}`,
    `units offered: ${spread(samples.map(({ offered }) => offered))}`,
    `free bins: ${spread(samples.map(({ free }) => free))}; none in ${share(samples.filter(({ free }) => free === 0).length, samples.length)}`,
    `the hub takes no orders in ${share(closed, samples.length)} of ${samples.length} looks; ${unanswered} looks without an answer`,
    `money lost: ${lost} cents`,
    `rows: ${rows.map(({ table, grown }) => `${table} ${grown > 0 ? '+' : ''}${grown}`).join(', ')}`,
    `bytes: cloud ${bytes.cloud}, journal ${bytes.journal}, logs ${bytes.logs}`,
    ...table(tally, 'the abuser was answered', 'answer '),
    ...table(tally, 'the abuser saw', 'saw '),
    ...table(tally, 'the thief', 'thief '),
    ...table(honest, 'the honest were answered', 'answer '),
    ...(lies.length === 0 ? [] : [`${lies.length} lies in the books`]),
    ...alike(lies).map(([count, lie]) => `  ${count} × ${lie}`),
    violations.length === 0 ? 'no violation' : `${violations.length} violations`,
    ...alike(violations).map(([count, violation]) => `  ${count} × ${violation}`),
  ].join('\n')
}

/** Counts texts that differ only in ids and numbers; the first text represents its group. */
function alike(texts: readonly string[]): [count: number, text: string][] {
  const found = new Map<string, [number, string]>()
  for (const text of texts) {
    const kind = text.slice(0, 60).replaceAll(/[0-9a-f-]{8,}|\d+/g, 'n')
    found.set(kind, [(found.get(kind)?.[0] ?? 0) + 1, found.get(kind)?.[1] ?? text.slice(0, 300)])
  }
  return [...found.values()]
}

const share = (part: number, all: number): string =>
  `${all === 0 ? 0 : Math.round((1000 * part) / all) / 10} %`

/** Minimum, median, 99th percentile, maximum. */
function spread(values: readonly number[]): string {
  if (values.length === 0) return 'none'
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number): string => {
    const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
    return Number.isInteger(value) ? String(value) : value.toFixed(1)
  }
  return `least ${at(0)}, median ${at(0.5)}, p99 ${at(0.99)}, most ${at(1)}`
}
