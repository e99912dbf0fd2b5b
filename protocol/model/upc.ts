import { normalText } from './name-text.ts'

/** The twelfth digit of a UPC-A, from its first eleven (GS1 General Specifications §7.9). */
export function upcCheckDigit(elevenDigits: string): number {
  const sum = Array.from(elevenDigits).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 3 : 1),
    0,
  )
  return (10 - (sum % 10)) % 10
}

/** Whether the text has 12 digits, and the last one checks the others. */
export const isUpc = (text: string): boolean =>
  /^\d{12}$/.test(text) && upcCheckDigit(text.slice(0, 11)) === Number(text[11])

/**
 * The 12 digits of a UPC, for lookups. People write spaces or hyphens, scanners send an EAN-13 or GTIN-14 with more zeros, and
 * spreadsheets drop leading zeros. Undefined if the number has more digits than a UPC.
 */
export function upcDigits(text: string): string | undefined {
  const digits = text.replaceAll(/[\s-]/g, '')
  if (!/^\d{1,14}$/.test(digits)) return undefined
  const number = digits.replace(/^0+/, '')
  return number.length > 12 ? undefined : number.padStart(12, '0')
}

/**
 * The same for a stored UPC: all digits must be present, and the check digit must be right. Any other text is returned
 * unchanged.
 */
export function normalUpc(text: string): string {
  const upc = upcDigits(text)
  const isWhole = text.replaceAll(/\D/g, '').length >= 12
  return upc !== undefined && isWhole && isUpc(upc) ? upc : text
}

/** A UPC in a body or a file, in each form that `normalUpc` reads. */
export const UpcText = normalText(40, normalUpc).refine(
  isUpc,
  'must be a UPC: 12 digits, the last one a check digit',
)
