/** The twelfth digit of a UPC-A, from its first eleven (GS1 General Specifications §7.9). */
export function upcCheckDigit(elevenDigits: string): number {
  const sum = Array.from(elevenDigits).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 3 : 1),
    0,
  )
  return (10 - (sum % 10)) % 10
}

/** Twelve digits, of which the last checks the others. */
export const isUpc = (text: string): boolean =>
  /^\d{12}$/.test(text) && upcCheckDigit(text.slice(0, 11)) === Number(text[11])
