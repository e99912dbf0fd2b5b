import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Clock, Random } from '../../../protocol/model/runtime.ts'
import { keepFirst, readKept } from '../settings/kept-file.ts'

/** Addresses under which files can be fetched for a while without any other credential. */
export interface MediaSigner {
  /** Stays the same for a quarter of its life, so that it can be kept in caches, and is good for at least its life. */
  addressOf(key: string): string
  /** Until when an address is good, in milliseconds since the epoch; null where it is not, or no more. */
  check(key: string, signed: { expires: string | undefined; signature: string | undefined }): number | null
}

export interface SignerOptions {
  /** As callers know the service, without a slash at its end. */
  baseUrl: string
  secret: string
  lifetimeMs: number
  clock: Clock
}

export function mediaSigner({ baseUrl, secret, lifetimeMs, clock }: SignerOptions): MediaSigner {
  const sign = (key: string, expires: string): string =>
    createHmac('sha256', secret).update(`${expires}\n${key}`).digest('base64url')
  const stepMs = Math.max(1000, lifetimeMs / 4)

  return {
    addressOf(key) {
      const until = (Math.floor(clock.now() / stepMs) + 1) * stepMs + lifetimeMs
      const expires = String(Math.ceil(until / 1000))
      return `${baseUrl}/files/${key}?expires=${expires}&signature=${sign(key, expires)}`
    },
    check(key, { expires = '', signature = '' }) {
      if (!/^\d{1,12}$/.test(expires)) return null
      const [given, right] = [Buffer.from(signature), Buffer.from(sign(key, expires))]
      if (given.length !== right.length || !timingSafeEqual(given, right)) return null
      const until = Number(expires) * 1000
      return until > clock.now() ? until : null
    },
  }
}

/** The secret of file addresses that is kept in a folder, made there at first. */
export function keptMediaSecret(folder: string, random: Random): string {
  const path = join(folder, 'media-secret')
  return readKept(path) ?? keepFirst(path, randomHex(random, 32))
}
