import { createHash, timingSafeEqual } from 'node:crypto'
import * as files from 'node:fs'
import { randomHex } from '../../protocol/model/ids.ts'
import { keepSecret } from '../../protocol/model/kept-secret.ts'
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

/** The token kept in the file at `path`; made there where there is none yet. `say` is told where an empty one is replaced. */
export function keptToken(path: string, random: Random, say: (sentence: string) => void): string {
  const token = keepSecret(files, path, `${randomHex(random, 24)}\n`, say).trim()
  if (token.length < 16) throw new Error(`${path} holds no token: remove it, or set LOCAL_TOKEN`)
  return token
}
