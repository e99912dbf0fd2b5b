import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkedOut } from '../../protocol/build.ts'
import { BUILD_FILE, type Build } from '../../protocol/model/build-time.ts'

/** Writes beside compiled programs which commit they are, and when it was made. Without git the programs know neither. */
export function writeBuildFile(root: string, folder: string): Build | undefined {
  const build = checkedOut(root)
  if (!build) return undefined
  const committed_at = new Date(build.committedAt).toISOString()
  writeFileSync(join(folder, BUILD_FILE), `${JSON.stringify({ commit: build.commit, committed_at })}\n`)
  return build
}
