import type { ChaosOutcome } from './run-chaos.ts'
import type { Tally } from './tally.ts'

/** The result of a run, for people. */
export function reportOf({ tally, violations }: ChaosOutcome, seconds: number): string {
  const kills = tally.of('kill ').reduce((sum, [, count]) => sum + count, 0)
  return [
    `${kills} kills in ${seconds.toFixed(0)} s`,
    ...table(tally, 'kills', 'kill '),
    ...table(tally, 'faults', 'fault '),
    ...table(tally, 'the hub’s line', 'line '),
    ...table(tally, 'orders', 'order '),
    ...table(tally, 'payments', 'payment '),
    ...table(tally, 'refunds', 'refund '),
    ...table(tally, 'motions', 'motion '),
    ...table(tally, 'visits', 'visit '),
    ...table(tally, 'answers', 'answer '),
    ...table(tally, 'also', 'also '),
    violations.length === 0 ? 'no violation' : `${violations.length} violations`,
    ...violations.map((violation) => `  ${violation}`),
  ].join('\n')
}

/** A line with the counts of a prefix; no line if there are none. */
export function table(tally: Tally, title: string, prefix: string): string[] {
  const rows = tally.of(prefix)
  return rows.length === 0 ? [] : [`${title}: ${rows.map(([name, count]) => `${name} ${count}`).join(', ')}`]
}
