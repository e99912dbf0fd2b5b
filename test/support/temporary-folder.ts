import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { leftOut } from './long-tests.ts'
import { dropDatabasesOfRun } from './postgres.ts'

const PREFIX = 'larder-run-'

/**
 * Creates one temporary folder for all files of a run. At the end it is deleted, and so are the run's databases: workers are killed
 * before they could clean up.
 */
export default function setup(): (() => Promise<void>) | undefined {
  // Runs once for all projects.
  if (basename(tmpdir()).startsWith(PREFIX)) return undefined
  if (leftOut.length > 0) console.log(`Left out without TEST_LONG=1: ${leftOut.join(' ')}`)
  const folder = mkdtempSync(join(tmpdir(), PREFIX))
  // Services that change to another user have their files in it.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  return async () => {
    const url = process.env['TEST_POSTGRES_URL']
    if (url !== undefined) await dropDatabasesOfRun(url)
    rmSync(folder, { recursive: true, force: true })
  }
}
