import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'

/**
 * The secret of file addresses that is kept in a folder, made there at first. Of processes that do so at once, the first
 * one's secret stays.
 */
export function keptMediaSecret(folder: string, random: Random): string {
  const path = join(folder, 'media-secret')
  mkdirSync(folder, { recursive: true })
  const known = read(path)
  if (known !== undefined) return known
  const scratch = `${path}.${process.pid}`
  writeFileSync(scratch, randomHex(random, 32), { mode: 0o600 })
  try {
    linkSync(scratch, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(scratch, { force: true })
  }
  return readFileSync(path, 'utf8')
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
