import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readBuild, versionOf, type Build } from './model/build-time.ts'

/** The commit that a folder has checked out; undefined without git. */
export function checkedOut(folder: string): Build | undefined {
  try {
    const words = ['-C', folder, 'log', '-1', '--format=%H %cI']
    const [commit, at] = execFileSync('git', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .trim()
      .split(' ')
    return { commit: commit!, committedAt: Date.parse(at!) }
  } catch {
    return undefined
  }
}

/** The build of this program. Compiled programs have a build file; sources that run directly have git. */
export const BUILD =
  readBuild(import.meta.dirname, (path) => readFileSync(path, 'utf8')) ?? checkedOut(import.meta.dirname)

/** `YYYY.M.D+<short commit>`, by the UTC date of the commit. */
export const PRODUCT_VERSION = versionOf(BUILD)
