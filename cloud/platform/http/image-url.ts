import type { Order } from '../../../protocol/contract/consumer-orders.ts'
import { JsonText } from './handler.ts'

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
