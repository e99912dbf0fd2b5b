import type { Random } from '../../protocol/model/runtime.ts'
import type { FaultType } from './fault-types.ts'
import type { Faults } from './faults.ts'

/** Changes a line on its way: none, one, or several lines arrive. */
export type LineFilter = (line: string) => string[]

/** Applies the faults of a controller's line to the lines of one direction. */
export function lineFilter(
  faults: Faults,
  controllerId: string,
  random: Random,
  direction: 'to_hub' | 'to_controller',
): LineFilter {
  const strikes = (type: FaultType): boolean => faults.strikes(type, controllerId)
  return (line) => {
    if (strikes('silent_port') || (direction === 'to_hub' && strikes('lost_replies'))) return []
    return strikes('corrupted_lines') ? corrupt(line, random) : [line]
  }
}

/** The controllers at the ends of the cables, in the order of the cables, if some are exchanged with the next ones. */
export function crossed(ids: readonly string[], exchanged: readonly string[]): string[] {
  const ends = [...ids]
  for (const id of exchanged) {
    const one = ids.indexOf(id)
    const other = (one + 1) % ids.length
    if (one >= 0) [ends[one], ends[other]] = [ends[other]!, ends[one]!]
  }
  return ends
}

/** Damage as a noisy line does it. */
function corrupt(line: string, random: Random): string[] {
  const at = Math.floor(random.fraction() * line.length)
  const [before, after] = [line.slice(0, at), line.slice(at + 1)]
  const byte = String.fromCharCode(33 + Math.floor(random.fraction() * 94))
  switch (Math.floor(random.fraction() * 6)) {
    case 0:
      return [before + byte + after]
    case 1:
      return [before + after]
    case 2:
      return [`${before}${byte}${line.slice(at)}`]
    case 3:
      return [before, line.slice(at)]
    case 4:
      // A burst of noise without a line feed, longer than any frame.
      return [before + byte.repeat(300)]
    default:
      return [line, line]
  }
}
