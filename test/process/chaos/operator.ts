import { spawn } from 'node:child_process'
import { commandOf } from '../../support/programs.ts'
import type { Plant } from './plant.ts'

export interface Ended {
  status: number | null
  stdout: string
  errors: string
}

/** Runs an operator's command at the database of the installation, to its end. */
export function attempt(
  { places, databaseUrl }: Pick<Plant, 'places' | 'databaseUrl'>,
  ...words: readonly string[]
): Promise<Ended> {
  const [node, ...main] = commandOf('cloud/cli/main')
  const env = { PATH: process.env['PATH'], DATA_DIR: places.cloud, DATABASE_URL: databaseUrl }
  const child = spawn(node, [...main, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended: Ended = { status: null, stdout: '', errors: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ended.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ended.errors += text))
  return new Promise((resolve) => child.once('close', (status) => resolve({ ...ended, status })))
}

/** Runs an operator's command that succeeds. Returns its output, which is JSON. */
export async function operate(
  plant: Pick<Plant, 'places' | 'databaseUrl'>,
  ...words: readonly string[]
): Promise<Record<string, unknown>> {
  const { status, stdout, errors } = await attempt(plant, ...words)
  if (status !== 0) throw new Error(`larder ${words.join(' ')}: ${status} ${errors}`)
  return JSON.parse(stdout) as Record<string, unknown>
}
