import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'

const PREFIX = 'larder-run-'

/**
 * All that a run of the suites makes in the temporary folder stands in one folder of its own, which goes at its end:
 * workers are killed before they could tidy up.
 */
export default function setup(): (() => void) | undefined {
  // Once for all projects.
  if (basename(tmpdir()).startsWith(PREFIX)) return undefined
  const folder = mkdtempSync(join(tmpdir(), PREFIX))
  // Services that become another user have their files in it.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
