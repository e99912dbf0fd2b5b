import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import type { Clock, Random } from '../../../protocol/model/runtime.ts'
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

/**
 * The same replacement in JSON that a database wrote. It cannot hit text inside a value: there, the quotation marks around
 * `image_url` would be escaped.
 */
export function jsonWithImages<T>(addressOf: AddressOf, { text }: JsonText<T>): JsonText<T> {
  const known = new Map<string, string>()
  const shown = (value: string): string => {
    const before = known.get(value)
    if (before !== undefined) return before
    const after = JSON.stringify(imageUrl(addressOf, JSON.parse(value) as string))
    known.set(value, after)
    return after
  }
  return new JsonText<T>(
    text.replaceAll(
      /("image_url"\s*:\s*)("(?:[^"\\]|\\.)*")/g,
      (_all, name: string, value: string) => `${name}${shown(value)}`,
    ),
  )
}
