import * as files from 'node:fs'
import { z } from 'zod'
import { using } from './settings/config.ts'
import { UsageError } from './settings/usage-error.ts'

/** A list in a JSON file of this machine, beside the database. No backup contains it. */
export function storedList<T>(path: string, item: z.ZodType<T>) {
  const textOf = (items: readonly T[]): string => JSON.stringify(items, null, 2)
  return {
    /** Throws a `UsageError` that names the file and the remedy if it cannot be read: an operator may have copied it as root. */
    read(): T[] {
      if (!files.existsSync(path)) return []
      const text = using('DATA_DIR', path, 'read', () => files.readFileSync(path, 'utf8'))
      try {
        return z.array(item).parse(JSON.parse(text))
      } catch (error) {
        throw new UsageError(
          `DATA_DIR: ${path} is damaged. Put back an undamaged copy, or move the file away: the service then makes it from the ` +
            'database. If the database was restored from a backup, revoke again what was revoked after that backup',
          { cause: error },
        )
      }
    },
    /** Replaces the file at one instant, if its content changes. Several processes may share the folder. */
    write(items: readonly T[]): void {
      const text = textOf(items)
      if (files.existsSync(path) && files.readFileSync(path, 'utf8') === text) return
      const draft = `${path}.${process.pid}.new`
      files.writeFileSync(draft, text, { mode: 0o600, flush: true })
      files.renameSync(draft, path)
    },
  }
}
