import type { Random } from '../../protocol/model/runtime.ts'
import type { Faults } from './faults.ts'

/** What becomes of a line on its way: none, one, or several lines come out. */
export type LineFilter = (line: string) => string[]

export function linesToHub(faults: Faults, controllerId: string, random: Random): LineFilter {
  return (line) => {
    if (faults.strikes('silent_port', controllerId) || faults.strikes('lost_replies', controllerId)) return []
    return faults.strikes('corrupted_lines', controllerId) ? corrupt(line, random) : [line]
  }
}

export function linesToController(faults: Faults, controllerId: string, random: Random): LineFilter {
  return (line) => {
    if (faults.strikes('silent_port', controllerId)) return []
    return faults.strikes('corrupted_lines', controllerId) ? corrupt(line, random) : [line]
  }
}

/** Damage as a noisy line does it. */
export function corrupt(line: string, random: Random): string[] {
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
