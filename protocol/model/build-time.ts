export const BUILD_FILE = 'build.json'

/** How many folders above the program's folder the file may be. */
const LEVELS = 2

/** The build of a program. */
export interface Build {
  /** Full hash. */
  commit: string
  /** When the commit was made; milliseconds since the Unix epoch. */
  committedAt: number
}

/**
 * The build file in a program's folder or a few folders above it; undefined without one. `read` returns the text of a
 * file.
 */
export function readBuild(folder: string, read: (path: string) => string): Build | undefined {
  for (let level = 0; level <= LEVELS; level += 1)
    try {
      const path = `${folder}/${'../'.repeat(level)}${BUILD_FILE}`
      const { commit, committed_at: at } = JSON.parse(read(path)) as Record<string, unknown>
      const committedAt = typeof at === 'string' ? Date.parse(at) : NaN
      if (!Number.isFinite(committedAt)) return undefined
      return { commit: typeof commit === 'string' ? commit : 'unknown', committedAt }
    } catch {
      // Not here, or not readable: a folder above may have it.
    }
  return undefined
}

/**
 * The commit time of the program's build, in milliseconds since the Unix epoch; 0 if unknown. The present cannot be
 * earlier, so a board's clock that is earlier must be wrong.
 */
export const buildTimeOf = (folder: string, read: (path: string) => string): number =>
  readBuild(folder, read)?.committedAt ?? 0

const SHORT_COMMIT = 7

/** `YYYY.M.D+<short commit>`, by the UTC date of the commit; `0.0.0+unknown` if the commit is unknown. */
export function versionOf(build: Build | undefined): string {
  if (!build) return '0.0.0+unknown'
  const date = new Date(build.committedAt)
  const day = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()].join('.')
  return `${day}+${build.commit.slice(0, SHORT_COMMIT)}`
}

/** The version of the HTTP API and of package.json. Programs report their own version (`protocol/build.ts`). */
export const VERSION = '0.1.0'
