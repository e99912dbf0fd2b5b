import { hash, timingSafeEqual } from 'node:crypto'
import * as files from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { storeSecret } from '../../protocol/model/stored-secret.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { storageReasonOf } from '../journal/storage-error.ts'

/** SHA-256, hexadecimal. Tokens have enough entropy that a slow digest would add nothing. */
export const digestOf = (text: string): string => hash('sha256', text)

/** Compares in constant time. */
export const isSameDigest = (left: string, right: string): boolean =>
  left.length === right.length && timingSafeEqual(Buffer.from(left), Buffer.from(right))

/**
 * With TLS the prefix binds the cookie to this host: a different host of the domain cannot set it (RFC
 * 6265bis §4.1.3).
 */
export const cookieName = (isTls: boolean): string => (isTls ? '__Host-larder_hub' : 'larder_hub')

/** Scripts cannot read the cookie, and no page of another site makes the browser send it. */
export const cookieHeader = (session: string, seconds: number, isTls: boolean): string =>
  `${cookieName(isTls)}=${session}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isTls ? '; Secure' : ''}`

/** Whether the request comes from the hub's own page, by the browser's headers. Programs send neither header. */
export function isSameSite(headers: Headers): boolean {
  const site = headers.get('sec-fetch-site')
  const origin = headers.get('origin')
  if (site !== null && site !== 'same-origin' && site !== 'none') return false
  return origin === null || (URL.canParse(origin) && new URL(origin).host === headers.get('host'))
}

/** Reads the token of the local API: LOCAL_TOKEN, or the token in the file next to the journal. */
export function tokenKeeper(
  { store, local }: { store: string; local: { token: string | undefined } },
  { random }: { random: Random },
  log: Log,
): { read(): string } {
  const path = `${store}.token`
  let kept = local.token
  return {
    read() {
      if (kept !== undefined) return kept
      try {
        return (kept = ensureToken(path, random, (sentence) => log.warn({}, sentence)))
      } catch (error) {
        if (storageReasonOf(error, path) === undefined) throw error
        // A temporary token that no person has. The file is read again when the storage works.
        log.error(
          { path, error: String(error) },
          'STORE: the token of the local API cannot be read: no caller can log in',
        )
        return randomHex(random, 24)
      }
    },
  }
}

/** The token in the file at `path`; created if there is none. Calls `say` if an empty file is replaced. */
export function ensureToken(path: string, random: Random, say: (sentence: string) => void): string {
  const token = storeSecret(files, path, `${randomHex(random, 24)}\n`, say).trim()
  if (token.length < 16) throw new Error(`${path} holds no token: remove it, or set LOCAL_TOKEN`)
  return token
}
