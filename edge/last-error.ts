/** The functions of `node:fs` that this module uses. */
interface Files {
  readFileSync(path: string, encoding: 'utf8'): string
  writeFileSync(path: string, text: string): void
  rmSync(path: string, options: { force: true }): void
}

/** Maximum number of characters of an error. */
const MAX = 1000

/**
 * Stores the error that ended the service in a file next to the journal, because the journal itself may have
 * failed. The next start reports it with the alarm `hub_restarting`.
 */

export function lastErrorFile(path: string, files: Files) {
  return {
    /** The error of the last run; the file is deleted. */
    take(): string | undefined {
      try {
        const text = files.readFileSync(path, 'utf8').slice(0, MAX)
        files.rmSync(path, { force: true })
        return text === '' ? undefined : text
      } catch {
        return undefined
      }
    },
    keep(error: unknown): void {
      try {
        files.writeFileSync(path, String(error instanceof Error ? error.message : error).slice(0, MAX))
      } catch {
        // The disk itself may have failed; the log contains the error.
      }
    },
  }
}
