import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import * as files from 'node:fs'
import { randomHex } from '../../protocol/model/ids.ts'
import { keepSecret } from '../../protocol/model/kept-secret.ts'
import type { Random } from '../../protocol/model/runtime.ts'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Whether what is given is the token. Takes the same time whatever is wrong with it. */
export function tokenCheck(token: string): (given: string) => boolean {
  const expected = digest(token)
  return (given) => timingSafeEqual(digest(given), expected)
}

export const COOKIE = 'larder_hub'

/** What a browser keeps for the token: whoever reads it there has not got the token, and a new token ends it. */
export const sessionOf = (token: string): string =>
  createHmac('sha256', token).update('larder page').digest('base64url')

/** Scripts cannot read it, and no other site's page makes the browser send it. */
export const cookieHeader = (session: string, seconds: number, isTls: boolean): string =>
  `${COOKIE}=${session}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isTls ? '; Secure' : ''}`

/** Whether a browser says that the request is of the hub's own page. Programs say neither. */
export function isSameSite(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  if (site !== null && site !== 'same-origin' && site !== 'none') return false
  return origin === null || (URL.canParse(origin) && new URL(origin).host === headers.get('host'))
}

/** The token kept in the file at `path`; made there where there is none yet. `say` is told where an empty one is replaced. */
export function keptToken(path: string, random: Random, say: (sentence: string) => void): string {
  const token = keepSecret(files, path, `${randomHex(random, 24)}\n`, say).trim()
  if (token.length < 16) throw new Error(`${path} holds no token: remove it, or set LOCAL_TOKEN`)
  return token
}
