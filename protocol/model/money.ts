/**
 * Amounts of money are integers of the smallest unit of their currency: cents, yen. The card
 * processor defines the units (https://docs.stripe.com/currencies). Tables of browsers differ: some give HUF no decimals.
 */

const withoutDecimals: readonly string[] =
  'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' ')
const threeDecimals: readonly string[] = 'BHD JOD KWD OMR TND'.split(' ')

/** The number of decimals of a currency: 2 for USD, 0 for JPY. */
export const decimalsOf = (currency: string): number =>
  withoutDecimals.includes(currency) ? 0 : threeDecimals.includes(currency) ? 3 : 2

/** The factor between a currency and its smallest unit: 100 for USD, 1 for JPY. */
export const unitsOf = (currency: string): number => 10 ** decimalsOf(currency)

/** `3.78` for 378 cents, `378` for 378 yen. */
export const amountText = (amount: number, currency: string): string =>
  (amount / unitsOf(currency)).toFixed(decimalsOf(currency))

/** The amount in smallest units of a text such as `3.78`. */
export const amountOf = (text: string, currency: string): number =>
  Math.round(Number(text) * unitsOf(currency))

/** `3.78 USD`. */
export const moneyText = (amount: number, currency: string): string =>
  `${amountText(amount, currency)} ${currency}`

/** `$3.78` in English, `3,78 $` in German. */
export function localMoney(amount: number, currency: string, language: string): string {
  const decimals = decimalsOf(currency)
  return new Intl.NumberFormat(language, {
    style: 'currency',
    currency,
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  }).format(amount / unitsOf(currency))
}
