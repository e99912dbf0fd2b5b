import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Whether an `Authorization` header carries the token. Takes the same time whatever is wrong with it. */
export function bearerCheck(token: string): (header: string | undefined) => boolean {
  const expected = digest(token)
  return (header) => {
    const given = /^Bearer +(\S+)$/i.exec(header ?? '')?.[1]
    return timingSafeEqual(digest(given ?? ''), expected) && given !== undefined
  }
}

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
