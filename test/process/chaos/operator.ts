import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { commandOf } from '../../support/programs.ts'
import type { Plant } from './plant.ts'

/** Runs an operator's command at the database of the installation. Returns its output, which is JSON. */
export async function operate(
  { places, databaseUrl }: Plant,
  words: readonly string[],
): Promise<Record<string, unknown>> {
  const [node, ...main] = commandOf('cloud/cli/main')
  const env = { PATH: process.env['PATH'], DATA_DIR: places.cloud, DATABASE_URL: databaseUrl }
  const { stdout } = await promisify(execFile)(node, [...main, ...words], { env })
  return JSON.parse(stdout) as Record<string, unknown>
}
