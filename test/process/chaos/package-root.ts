import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** The repository's folder, above this file or what it was compiled to: only there is tsconfig.json. */
export function packageRoot(): string {
  let folder = import.meta.dirname
  while (!existsSync(join(folder, 'tsconfig.json'))) folder = join(folder, '..')
  return folder
}

/** How to run a program of this package: from its source where this file is one, compiled where this file is compiled. */
export function commandOf(program: string): string[] {
  const isSource = import.meta.filename.endsWith('.ts')
  const path = join(import.meta.dirname, '../../..', `${program}${isSource ? '.ts' : '.js'}`)
  return [process.execPath, ...(isSource ? ['--import', 'tsx'] : []), path]
}
