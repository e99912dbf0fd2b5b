import { readFileSync, writeFileSync } from 'node:fs'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'

/** The token kept in the file at `path`, for its owner's eyes only; made there where there is none yet. */
export function keptToken(path: string, random: Random): string {
  try {
    writeFileSync(path, `${randomHex(random, 24)}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const token = readFileSync(path, 'utf8').trim()
  if (token.length < 16) throw new Error(`${path} holds no token: remove it, or set LOCAL_TOKEN`)
  return token
}
