import { z } from 'zod'
import { OrderStatus } from '../model/order-status.ts'

/** Field schemas that many routes share. */

/** A row's id. */
export const Id = z.int().min(1)

/** Integer cents. */
export const Cents = z.int()

/** An instant: ISO 8601 in UTC with a trailing `Z` (O §1). */
export const Timestamp = z.iso.datetime()

/** `processing_status`. */
export const ProcessingStatus = z.literal(Object.values(OrderStatus)).meta({
  id: 'ProcessingStatus',
  description: Object.entries(OrderStatus)
    .map(([name, code]) => `${code} ${name}`)
    .join(', '),
  'x-enum-varnames': Object.keys(OrderStatus),
})
export const ProcessingStatusName = z
  .enum(Object.keys(OrderStatus) as [keyof typeof OrderStatus, ...(keyof typeof OrderStatus)[]])
  .meta({ id: 'ProcessingStatusName' })

/** Derived from an order's payments and refunds (I6). */
export const PaymentStatus = z
  .enum([
    'unpaid',
    'pending',
    'requires_action',
    'authorized',
    'completed',
    'partially_refunded',
    'refunded',
    'failed',
    'canceled',
  ])
  .meta({ id: 'PaymentStatus' })
export type PaymentStatus = z.infer<typeof PaymentStatus>

/** A bin's number, within the documented range (O §8). */
export const BinNumber = z.int().min(1).max(4)

/** Characters that people put between the digits of a telephone number. */
const SEPARATORS = /[\s.()/\u00ad\u2010-\u2015\u2060\u2212-]/gu

/** `(0)` after the country code is dialled inside the country only. */
function withoutSeparators(text: string): string {
  return text.replace(/^(\+\d{1,3}[ .-]?)\(0\)/, '$1').replaceAll(SEPARATORS, '')
}
const E164 = /^\+[1-9]\d{6,14}$/
const phoneRule = 'must be a phone number in E.164, such as +15550100000'

/**
 * E.164. Separators between the digits are dropped (`+1 (415) 555-0100`). A number without `+` and country code is refused: its
 * country is unknown.
 */
export const PhoneNumber = z.string().overwrite(withoutSeparators).regex(E164, phoneRule)

/** The same in a query, where an unencoded plus sign arrives as a blank. */
export const PhoneInQuery = z
  .string()
  .overwrite((text) => withoutSeparators(text.replace(/^ /, '+')))
  .regex(E164, phoneRule)

/** Each character matches in one way only: a text that is too long is judged before its length is checked. */
const EMAIL = /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/
const emailRule = 'must be an e-mail address, such as ada@example.org'

/** Accepted in any case, stored in small letters. */
export const Email = z.string().max(254).toLowerCase().regex(EMAIL, emailRule)

/** An e-mail address in a query, in which an unencoded plus sign is a space. */
export const EmailInQuery = z
  .string()
  .max(254)
  .toLowerCase()
  .regex(EMAIL, `${emailRule}; a plus sign in a query is written %2B`)

/** A first or a last name. */
export const PersonName = z.string().trim().min(1).max(100)
