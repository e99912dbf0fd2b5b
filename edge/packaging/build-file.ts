import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BUILD_FILE } from '../../protocol/model/build-time.ts'

/** Writes beside compiled programs which commit they are, and when it was made. Without git nothing is known of it. */
export function writeBuildFile(root: string, folder: string): void {
  try {
    const words = ['-C', root, 'log', '-1', '--format=%H %cI']
    const [commit, at] = execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .trim()
      .split(' ')
    writeFileSync(join(folder, BUILD_FILE), `${JSON.stringify({ commit, committed_at: at })}\n`)
  } catch {
    // No checkout, or no git: the programs then know no earliest time.
  }
}
