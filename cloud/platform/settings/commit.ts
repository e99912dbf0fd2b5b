import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** How far above a program's folder its source tree begins: compiled it stands a folder deeper. */
const LEVELS = 2

/** The commit of the source tree that a program belongs to by its folder, or `unknown` where it is no checkout. */
export function commitOf(folder: string): string {
  const root = Array.from({ length: LEVELS + 1 }, (_, level) =>
    join(folder, ...Array<string>(level).fill('..')),
  ).find((path) => existsSync(join(path, '.git')))
  return root === undefined ? 'unknown' : headOf(root)
}

function headOf(root: string): string {
  const read = (...path: string[]): string | undefined => {
    try {
      return readFileSync(join(root, '.git', ...path), 'utf8').trim()
    } catch {
      return undefined
    }
  }
  const head = read('HEAD')
  const branch = /^ref: (.+)$/.exec(head ?? '')?.[1]
  if (branch === undefined) return head ?? 'unknown'
  const packed = read('packed-refs')
    ?.split('\n')
    .find((line) => line.endsWith(` ${branch}`))
  return read(...branch.split('/')) ?? packed?.split(' ')[0] ?? 'unknown'
}
