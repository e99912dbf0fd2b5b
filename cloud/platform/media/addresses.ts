import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { Clock, Random } from '../../../protocol/model/runtime.ts'
import { BoundedMap } from '../bounded-map.ts'
import { addressUnder } from '../public-url.ts'
import { ensureRandom, type Say } from '../settings/stored-file.ts'
import { JsonText } from '../store/json.ts'

/** Signs addresses from which files can be downloaded for a limited time without another credential. */
export interface MediaSigner {
  /**
   * The address stays constant for a quarter of its lifetime, so that caches work, and is valid for at least its
   * lifetime.
   */
  addressOf(key: string): string
  /** The end of an address's validity in milliseconds since the Unix epoch; null if it is invalid or has expired. */
  check(key: string, signed: { expires: string | undefined; signature: string | undefined }): number | null
}

interface SignerOptions {
  /** The service's address for callers. */
  baseUrl: string
  /** If there are several: the first one signs, and addresses signed by any are accepted. */
  secret: string | readonly string[]
  lifetimeMs: number
  /** Maximum number of cached addresses. Each is cached while it stays constant. */
  kept: number
  clock: Clock
}

export function mediaSigner({ baseUrl, secret: given, lifetimeMs, kept, clock }: SignerOptions): MediaSigner {
  const secrets = typeof given === 'string' ? [given] : given
  const sign = (key: string, expires: string, secret = secrets[0]!): string =>
    createHmac('sha256', secret).update(`${expires}\n${key}`).digest('base64url')
  const stepMs = Math.max(1000, lifetimeMs / 4)
  /**
   * Addresses of the current quarter. A list shows the same images repeatedly, and signing would be most of its work.
   */
  const known = new BoundedMap<string>(kept)
  let knownIn = 0

  return {
    addressOf(key) {
      const step = Math.floor(clock.now() / stepMs)
      if (step !== knownIn) known.clear()
      knownIn = step
      const before = known.get(key)
      if (before !== undefined) return before
      const expires = String(Math.ceil(((step + 1) * stepMs + lifetimeMs) / 1000))
      const address = addressUnder(
        baseUrl,
        `/files/${key}?expires=${expires}&signature=${sign(key, expires)}`,
      )
      known.set(key, address)
      return address
    },
    check(key, { expires = '', signature = '' }) {
      if (!/^\d{1,12}$/.test(expires)) return null
      const presented = Buffer.from(signature)
      const isRight = secrets.some((secret) => {
        const right = Buffer.from(sign(key, expires, secret))
        return presented.length === right.length && timingSafeEqual(presented, right)
      })
      if (!isRight) return null
      const until = Number(expires) * 1000
      return until > clock.now() ? until : null
    },
  }
}

/** Reads the secret of file addresses from a file in a folder; creates it if it is absent. */
export const ensureMediaSecret = (folder: string, random: Random, say: Say): string =>
  ensureRandom(join(folder, 'media-secret'), random, say)

/** Makes the signed address of a file of the media store. */
export type AddressOf = (key: string) => string

/**
 * The `image_url` for callers, from the stored one. An external address (http or https) and an empty text stay
 * unchanged. A key of the media store becomes a signed address.
 */
export const imageUrl = (addressOf: AddressOf, stored: string): string =>
  stored === '' || /^https?:\/\//.test(stored) ? stored : addressOf(stored)

/** An object with its image's address for callers. */
export const withImage = <T extends { image_url: string }>(addressOf: AddressOf, shown: T): T => ({
  ...shown,
  image_url: imageUrl(addressOf, shown.image_url),
})

/** An order with the image address of each line for callers. */
export const withImages = (addressOf: AddressOf, order: Order): Order => ({
  ...order,
  items: order.items.map((item) => withImage(addressOf, item)),
})

/** Replaces the stored place (`store://KEY`) in each `url` by a signed address. */
export const jsonWithFiles = <T>(addressOf: AddressOf, { text }: JsonText<T>): JsonText<T> =>
  new JsonText<T>(
    text.replaceAll(/("url"\s*:\s*)"store:\/\/([^"\\]+)"/g, (_all, name: string, key: string) => {
      return `${name}${JSON.stringify(addressOf(key))}`
    }),
  )

const IMAGE = '"image_url"'

/**
 * Replaces each `image_url` in JSON that a database wrote. Text inside a value never matches, because there the
 * quotation marks around `image_url` would be escaped.
 */
export function jsonWithImages<T>(addressOf: AddressOf, { text }: JsonText<T>): JsonText<T> {
  const shown = new Map<string, string>()
  let written = ''
  let from = 0
  for (let name = text.indexOf(IMAGE); name >= 0; name = text.indexOf(IMAGE, name + IMAGE.length)) {
    const begin = beginOfValue(text, name + IMAGE.length)
    if (text[begin] !== '"') continue
    const end = endOfString(text, begin)
    const value = text.slice(begin, end)
    let after = shown.get(value)
    if (after === undefined) {
      after = JSON.stringify(imageUrl(addressOf, JSON.parse(value) as string))
      shown.set(value, after)
    }
    written += text.slice(from, begin) + after
    from = end
  }
  return new JsonText<T>(written + text.slice(from))
}

/** The start of the value after a name that ends here. PostgreSQL puts blanks around the colon. */
function beginOfValue(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === ':') at += 1
  return at
}

/** The index after the closing quote of the string that starts here. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
