import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import type { NextCell } from '../protocol/mqtt/session.ts'
import type { EdgeConfig } from './config.ts'
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

/** Enrols the board in another cell, beside its present enrolment (`enrolment/move.ts`). */
export const moveByProgram =
  ({ mqtt, shown }: EdgeConfig) =>
  async ({ cloud, code }: NextCell): Promise<{ hub_id: number }> => {
    if (!mqtt.client || 'MQTT_URL' in shown)
      throw new Error('MQTT_PASSWORD or MQTT_URL is set, and would precede the broker of the other cell')
    const args = ['--move', '--cloud', cloud, '--code', code, ...process.argv.slice(2)]
    return JSON.parse(await outputOf(['enrolment', 'enrol-main.js'], args, MOVE_MS)) as { hub_id: number }
  }

/** A doctor that finds a fault has status 1. An error does not contain the arguments: they may be secret. */
function outputOf(path: readonly string[], args: readonly string[], timeoutMs = PROGRAM_MS): Promise<string> {
  const program = join(dirname(process.argv[1]!), ...path)
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [program, ...args], { timeout: timeoutMs }, (error, stdout, stderr) => {
      if (stdout !== '') return resolve(stdout)
      const problem = stderr.trim().replace(/^error: /, '')
      const end = error?.killed ? `does not end within ${timeoutMs / 1000} s` : 'ends without output'
      reject(new Error(problem || `${path.join('/')} ${end}`))
    })
  })
}
