import { createHmac, timingSafeEqual } from 'node:crypto'
import { join } from 'node:path'
import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Clock, Random } from '../../../protocol/model/runtime.ts'
import { keepFirst, readKept } from '../settings/kept-file.ts'
import { JsonText } from '../store/json.ts'

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

/** Where a file of the media store can be fetched for a while. */
export type AddressOf = (key: string) => string

/**
 * `image_url` of a product or of an order's line, of what is stored: an address elsewhere (http or https) as it is, a file of
 * the media store as a signed address (contract §4), nothing as an empty text.
 */
export const imageUrl = (addressOf: AddressOf, stored: string): string =>
  stored === '' || /^https?:\/\//.test(stored) ? stored : addressOf(stored)

/** What is stored of something with an image, as it is shown. */
export const withImage = <T extends { image_url: string }>(addressOf: AddressOf, shown: T): T => ({
  ...shown,
  image_url: imageUrl(addressOf, shown.image_url),
})

/** The same for each line of an order. */
export const withImages = (addressOf: AddressOf, order: Order): Order => ({
  ...order,
  items: order.items.map((item) => withImage(addressOf, item)),
})

/**
 * The same in JSON as a database writes it. Only a member's name stands before a colon with its quotation marks unescaped,
 * so that no text within a value is taken for one.
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
