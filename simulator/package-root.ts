import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The repository's folder, above this file or its compiled form: the only folder with a tsconfig.json. */
export function packageRoot(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'tsconfig.json'))) folder = join(folder, '..')
  return folder
}
