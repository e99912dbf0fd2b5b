/** The file that `npm run build` and the packages write beside the programs. */
export const BUILD_FILE = 'build.json'

/** How far above a program's folder it lies. */
const LEVELS = 2

/**
 * When the commit was made that a program was built from, in milliseconds since the Unix epoch: no earlier than this is the
 * present, whatever a board's clock shows. 0 where nothing says so. `folder`: of the program; `read`: the text of a file.
 */
export function buildTimeOf(folder: string, read: (path: string) => string): number {
  for (let level = 0; level <= LEVELS; level += 1)
    try {
      const path = `${folder}/${'../'.repeat(level)}${BUILD_FILE}`
      const { committed_at: at } = JSON.parse(read(path)) as { committed_at?: unknown }
      return typeof at === 'string' && Number.isFinite(Date.parse(at)) ? Date.parse(at) : 0
    } catch {
      // Not here, or not readable: perhaps a folder above.
    }
  return 0
}
