import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import type { HardwareDescription } from '../protocol/model/hardware.ts'
import type { NextCell } from '../protocol/mqtt/session.ts'
import type { NewKey } from './enrolment/renewal.ts'

/** Work that the service leaves to other programs beside it: their libraries would keep its memory, and their work would delay it. */

/** Maximum time of a program. */
const PROGRAM_MS = 20_000
/** A move calls two servers over a slow line. */
const MOVE_MS = 60_000

/** Makes a key: the library for requests would keep 18 MB of the service. */
export const newKeyByProgram = async (): Promise<NewKey> =>
  JSON.parse(await outputOf(['enrolment', 'enrol-main.js'], ['--new-key'])) as NewKey

/** The report of the doctor. */
export const doctorByProgram = (): Promise<string> =>
  outputOf(['doctor-main.js'], ['--json', ...process.argv.slice(2)])

/** Enrols the board in another cell, beside its present enrolment (`enrolment/move.ts`). `description`: in use now. */
export const moveByProgram = (next: NextCell, description: HardwareDescription): Promise<string> =>
  outputOf(['enrolment', 'enrol-main.js'], ['--move', ...process.argv.slice(2)], {
    timeoutMs: MOVE_MS,
    input: JSON.stringify({ next, description }),
  })

/** A doctor that finds a fault has status 1. */
function outputOf(
  path: readonly string[],
  args: readonly string[],
  { timeoutMs = PROGRAM_MS, input = '' } = {},
): Promise<string> {
  const program = join(dirname(process.argv[1]!), ...path)
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [program, ...args],
      { timeout: timeoutMs },
      (error, stdout, stderr) => {
        if (stdout !== '') return resolve(stdout)
        const problem = stderr.trim().replace(/^error: /, '')
        const end = error?.killed ? `does not end within ${timeoutMs / 1000} s` : 'ends without output'
        reject(new Error(problem || `${path.join('/')} ${end}`))
      },
    )
    // A program that ends early does not read it.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}
