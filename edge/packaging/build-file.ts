import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkedOut } from '../../protocol/build.ts'
import { BUILD_FILE, type Build } from '../../protocol/model/build-time.ts'

/** Writes the commit and its time next to the compiled programs. Without git there is no such file. */
export function writeBuildFile(root: string, folder: string): Build | undefined {
  const build = checkedOut(root)
  if (!build) return undefined
  const committed_at = new Date(build.committedAt).toISOString()
  writeFileSync(join(folder, BUILD_FILE), `${JSON.stringify({ commit: build.commit, committed_at })}\n`)
  return build
}
