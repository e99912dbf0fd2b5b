import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { Clock, Random } from '../../../protocol/model/runtime.ts'
import { BoundedMap } from '../bounded-map.ts'
import { addressUnder } from '../public-url.ts'
import { keptRandom, type Say } from '../settings/kept-file.ts'
import { JsonText } from '../store/json.ts'

/** Signs addresses from which files can be fetched for a while without any other credential. */
export interface MediaSigner {
  /** The address stays the same for a quarter of its lifetime, so that caches work, and is valid for at least all of it. */
  addressOf(key: string): string
  /** Until when an address is valid, in milliseconds since the Unix epoch; null if it is invalid or has expired. */
  check(key: string, signed: { expires: string | undefined; signature: string | undefined }): number | null
}

export interface SignerOptions {
  /** As callers know the service. */
  baseUrl: string
  /** Of several, the first signs, and addresses of each are accepted. */
  secret: string | readonly string[]
  lifetimeMs: number
  /** How many addresses are kept at most, for as long as they stay the same. */
  kept: number
  clock: Clock
}

export function mediaSigner({ baseUrl, secret: given, lifetimeMs, kept, clock }: SignerOptions): MediaSigner {
  const secrets = typeof given === 'string' ? [given] : given
  const sign = (key: string, expires: string, secret = secrets[0]!): string =>
    createHmac('sha256', secret).update(`${expires}\n${key}`).digest('base64url')
  const stepMs = Math.max(1000, lifetimeMs / 4)
  /** Of this step: a list shows the same images again and again, and signing is most of what it would take. */
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

/** The secret of file addresses, from a file in a folder; makes it if there is none. */
export const keptMediaSecret = (folder: string, random: Random, say: Say): string =>
  keptRandom(join(folder, 'media-secret'), random, say)

/** Makes the signed address of a file of the media store. */
export type AddressOf = (key: string) => string

/**
 * The `image_url` that callers see for the one that is stored: an address elsewhere (http or https) stays as it is, a key of
 * the media store becomes a signed address, an empty text stays empty.
 */
export const imageUrl = (addressOf: AddressOf, stored: string): string =>
  stored === '' || /^https?:\/\//.test(stored) ? stored : addressOf(stored)

/** Something with an image, as callers see it. */
export const withImage = <T extends { image_url: string }>(addressOf: AddressOf, shown: T): T => ({
  ...shown,
  image_url: imageUrl(addressOf, shown.image_url),
})

/** An order with the image of each line as callers see it. */
export const withImages = (addressOf: AddressOf, order: Order): Order => ({
  ...order,
  items: order.items.map((item) => withImage(addressOf, item)),
})

/** The same of files that are known by where they are stored (`store://KEY`): each `url` becomes a signed address. */
export const jsonWithFiles = <T>(addressOf: AddressOf, { text }: JsonText<T>): JsonText<T> =>
  new JsonText<T>(
    text.replaceAll(/("url"\s*:\s*)"store:\/\/([^"\\]+)"/g, (_all, name: string, key: string) => {
      return `${name}${JSON.stringify(addressOf(key))}`
    }),
  )

const IMAGE = '"image_url"'

/**
 * The same replacement in JSON that a database wrote. It cannot hit text inside a value: there, the quotation marks around
 * `image_url` would be escaped.
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

/** Where a value begins whose name ends here: PostgreSQL puts blanks around the colon. */
function beginOfValue(text: string, from: number): number {
  let at = from
  while (text[at] === ' ' || text[at] === ':') at += 1
  return at
}

/** Behind the closing mark of the string that begins here. */
function endOfString(text: string, begin: number): number {
  let at = begin + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
