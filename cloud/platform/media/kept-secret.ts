import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Random } from '../../../protocol/model/runtime.ts'
import { keepFirst, readKept } from '../settings/kept-file.ts'

/** The secret of file addresses that is kept in a folder, made there at first. */
export function keptMediaSecret(folder: string, random: Random): string {
  const path = join(folder, 'media-secret')
  return readKept(path) ?? keepFirst(path, randomHex(random, 32))
}
