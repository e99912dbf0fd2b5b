import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The commit that a source tree is at, or `unknown` where it is no checkout. */
export function commitOf(root: string): string {
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
