/** The part of `node:fs` that is used. */
interface Files {
  readFileSync(path: string, encoding: 'utf8'): string
  writeFileSync(path: string, text: string): void
  rmSync(path: string, options: { force: true }): void
}

/** Characters that are kept of an error. */
const MAX = 1000

/**
 * The error by which the service ended, in a file beside the journal: the journal itself may be what failed. The next start
 * reports it with the alarm `hub_restarting`.
 */
export type LastWords = ReturnType<typeof lastWords>

export function lastWords(path: string, files: Files) {
  return {
    /** What the life before left, once. */
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
        // The disk may be what failed; the log has it.
      }
    },
  }
}
