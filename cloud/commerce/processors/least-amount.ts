/**
 * The minimum card payment by currency, in its smallest unit: Stripe's minimum charge amounts
 * (https://docs.stripe.com/currencies). The sandbox has the same.
 */
const least: Readonly<Record<string, number>> = {
  AED: 200,
  AUD: 50,
  BGN: 100,
  BRL: 50,
  CAD: 50,
  CHF: 50,
  CZK: 1500,
  DKK: 250,
  EUR: 50,
  GBP: 30,
  HKD: 400,
  HUF: 17_500,
  INR: 50,
  JPY: 50,
  MXN: 1000,
  MYR: 200,
  NOK: 300,
  NZD: 50,
  PLN: 200,
  RON: 200,
  SEK: 300,
  SGD: 50,
  THB: 1000,
  USD: 50,
}

/** For a currency outside the table the processor itself decides. */
export const leastAmount = (currency: string): number => least[currency] ?? 1
