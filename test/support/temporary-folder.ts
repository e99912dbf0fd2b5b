import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { leftOut } from './long-tests.ts'

const PREFIX = 'larder-run-'

/**
 * All that a run of the suites makes in the temporary folder stands in one folder of its own, which goes at its end:
 * workers are killed before they could tidy up.
 */
export default function setup(): (() => void) | undefined {
  // Once for all projects.
  if (basename(tmpdir()).startsWith(PREFIX)) return undefined
  if (leftOut.length > 0) console.log(`Left out without TEST_LONG=1: ${leftOut.join(' ')}`)
  const folder = mkdtempSync(join(tmpdir(), PREFIX))
  // Services that become another user have their files in it.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
