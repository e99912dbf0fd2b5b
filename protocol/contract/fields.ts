import { z } from 'zod'
import { namedEnum } from '../model/named-enum.ts'
import { nameText, normalText } from '../model/name-text.ts'
import { OrderStatus, type OrderStatusName } from '../model/order-status.ts'

/** Field schemas that many routes share. */

/** A row's id. */
export const Id = z.int().min(1)

/** A person's identity at the identity provider (`sub`). White space around a pasted one is removed. */
export const Identity = z.string().trim().min(1).max(255)

/** Integer cents. */
export const Cents = z.int()

/** An instant: ISO 8601 in UTC with a trailing `Z` (O §1). */
export const Timestamp = z.iso.datetime()

/** A day `YYYY-MM-DD` of a report. Calendars can compute with the days around it. */
export const ReportDay = z.iso
  .date()
  .refine((day) => day >= '1970-01-02' && day < '9999-12-01', 'must be a date from 1970 to 9999')

/** The bounds of a report: days of the hub's calendar, or instants. */
export const DayOrTime = z
  .union([ReportDay, Timestamp], 'must be a date, YYYY-MM-DD, or a time, YYYY-MM-DDThh:mm:ssZ')
  .optional()
export const ReportRange = {
  from: DayOrTime.describe('First day, or time (inclusive). If it is left out: no bound.'),
  to: DayOrTime.describe('Last day, or time (exclusive). If it is left out: no bound.'),
}

/** Id parameters, each with the description that it has everywhere. */
export const HubId = Id.describe('Number of the hub.')
export const UserId = Id.describe('Number of the customer.')
export const OrderId = Id.describe('Number of the order.')
export const ProductId = Id.describe('Number of the product. A product belongs to one hub.')
export const HubIdOrNull = Id.nullable().describe('Number of the hub; null if no hub is concerned.')
export const OrderIdOrNull = Id.nullable().describe('Number of the order; null if there is none.')

/** Fields with one meaning in every object. */
export const Currency = z.string().describe('ISO 4217 code of the currency, such as `USD`.')
export const CreatedAt = Timestamp.describe('Time of creation (ISO 8601, UTC).')
export const UpdatedAt = Timestamp.describe('Time of the last change (ISO 8601, UTC).')
export const ImageUrl = z
  .string()
  .describe('Address of the image; empty if there is none. It expires: read the object again for a new one.')
export const Upc = z.string().describe('UPC of the product: 12 digits, the last one a check digit.')
export const Success = z.boolean().describe('True if the call had its effect.')
export const Message = z.string().describe('Result of the call as a sentence for people.')
export const CommandId = z.uuid().describe('UUID of the command that the cloud sent to the hub.')
export const DurationMs = z.int().describe('Duration in milliseconds.')

/** Cents that the customer was shown. */
export const ExpectedTotal = Cents.min(0)
  .optional()
  .describe(
    'Total in cents that the customer was shown. If the total is different, the answer is 409 `total_changed`. If it is left out: no check.',
  )

/** Paging: `{data, next_cursor, has_more}`. */
export const Limit = z.int().min(1).max(100).default(20).describe('Maximum number of items of the answer.')
export const Cursor = z
  .string()
  .max(64)
  .optional()
  .describe('`next_cursor` of the page before. If it is left out: the first page.')
export const NumberCursor = Id.nullable()
  .default(null)
  .describe('`next_cursor` of the page before. If it is left out: the first page.')
export const NextCursor = z
  .string()
  .nullable()
  .describe('Cursor of the next page; null if this is the last page.')
export const NextNumberCursor = Id.nullable().describe(
  'Cursor of the next page; null if this is the last page.',
)
export const HasMore = z.boolean().describe('True if there are further items after this page.')
export const Page = z.int().min(1).default(1).describe('Number of the page, from 1.')
export const Total = z.int().describe('Number of items on all pages together.')

/** One hub, or every hub of the credential. */
export const HubFilter = Id.optional().describe(
  'Only this hub. If it is left out: every hub that the credential reaches.',
)

/** The states of an order, as the contract explains them. */
const statusMeanings: Readonly<Record<OrderStatusName, string>> = {
  NEW: 'open cart; it can be changed.',
  PENDING_PAYMENT: 'items, prices and deals are frozen; the customer is paying.',
  QUEUED: 'paid; the order waits for the hub.',
  PREPARING: 'the hub is dispensing.',
  READY: 'the goods are in the bins; the customer can collect them.',
  COLLECTING: 'a bin was opened for the customer.',
  COMPLETED: 'the bins are empty and closed.',
  CANCELLED: 'cancelled before the hub started; refunded if it was paid.',
  TIMED_OUT: 'nothing was dispensed before the deadline; refunded.',
  FAILED: 'the hardware failed, or the goods were not collected.',
  EXPIRED: 'not paid in time; deleted a day later.',
}

/** `processing_status`. */
export const ProcessingStatus = z.literal(Object.values(OrderStatus)).meta({
  id: 'ProcessingStatus',
  description: [
    'State of an order as a number.',
    ...Object.entries(OrderStatus).map(
      ([name, code]) => `- ${code} ${name}: ${statusMeanings[name as OrderStatusName]}`,
    ),
  ].join('\n'),
  'x-enum-varnames': Object.keys(OrderStatus),
})
export const ProcessingStatusName = namedEnum(
  'ProcessingStatusName',
  'State of an order as a name.',
  statusMeanings,
)

/** Derived from an order's payments and refunds (I6). */
export const PaymentStatus = namedEnum(
  'PaymentStatus',
  'State of the payment of an order, derived from its payments and refunds.',
  {
    unpaid: 'no payment was started.',
    pending: 'a payment is in progress.',
    requires_action: 'the card’s holder or the integrator must confirm the payment.',
    authorized: 'the amount is reserved and not yet charged.',
    completed: 'paid, or the total is 0.',
    partially_refunded: 'a part of the money was refunded.',
    refunded: 'all of the money was refunded.',
    failed: 'the payment failed.',
    canceled: 'the payment was cancelled.',
  },
)
export type PaymentStatus = z.infer<typeof PaymentStatus>

/** A bin's number, within the documented range (O §8). */
export const BinNumber = z.int().min(1).max(4).describe('Number of the bin, 1 to 4.')

/** Characters that people put between the digits of a telephone number. */
const SEPARATORS = /[\s.()/\u00ad\u2010-\u2015\u2060\u2212-]/gu

/** `(0)` after the country code is dialled inside the country only. */
function withoutSeparators(text: string): string {
  return text.replace(/^(\+\d{1,3}[ .-]?)\(0\)/, '$1').replaceAll(SEPARATORS, '')
}
/** Characters of a telephone number with its separators. */
const LONGEST_PHONE = 100
const E164 = /^\+[1-9]\d{6,14}$/
const phoneRule = 'must be a phone number in E.164, such as +15550100000'

/**
 * E.164. Separators between the digits are dropped (`+1 (415) 555-0100`). A number without `+` and country code is refused: its
 * country is unknown.
 */
export const PhoneNumber = normalText(LONGEST_PHONE, withoutSeparators).regex(E164, phoneRule)

/** The same in a query, in which an unencoded plus sign arrives as a space. */
export const PhoneInQuery = normalText(LONGEST_PHONE, (text) =>
  withoutSeparators(text.replace(/^ /, '+')),
).regex(E164, phoneRule)

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
export const PersonName = nameText(100)
