import { z } from 'zod'
import { sql } from 'kysely'

/** The price of a product after its own markdown, in cents, rounded half up. */
export function discountedPrice(originalPrice: number, markdownPercent: number): number {
  return Math.floor((originalPrice * (100 - markdownPercent) + 50) / 100)
}

/** The same for a row of `products`, in SQL. */
export const discountedPriceSql = sql<number>`((products.original_price * (100 - products.markdown_percent) + 50) / 100)`

/** The input of a line's price. Cents; the markdown in percent. */
interface PriceableLine {
  quantity: number
  originalPrice: number
  markdownPercent: number
  /** The discount of deals for the whole line, after the markdown. */
  discount: number
}

/** Prices per unit, and of the whole line without (`net`) and with its `tax`. Integer cents. */
interface PricedLine {
  unitPriceOriginal: number
  unitPrice: number
  net: number
  tax: number
}

export interface PricedOrder {
  lines: PricedLine[]
  totalOriginal: number
  totalDiscounted: number
  taxTotal: number
  total: number
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/** Prices an order: tax on each line's net, rounded half up per line; every total is a sum of lines. */
export function priceOrder(lines: readonly PriceableLine[], taxMillipercent: number): PricedOrder {
  const priced = lines.map(({ quantity, originalPrice, markdownPercent, discount }) => {
    const unitPrice = discountedPrice(originalPrice, markdownPercent)
    const net = unitPrice * quantity - discount
    return { unitPriceOriginal: originalPrice, unitPrice, net, tax: taxOn(net, taxMillipercent) }
  })
  const totalDiscounted = sum(priced.map(({ net }) => net))
  const taxTotal = sum(priced.map(({ tax }) => tax))
  return {
    lines: priced,
    totalOriginal: sum(lines.map(({ quantity, originalPrice }) => quantity * originalPrice)),
    totalDiscounted,
    taxTotal,
    total: totalDiscounted + taxTotal,
  }
}

/** Tax in cents on `net` cents, rounded half up. The rate is in thousandths of a percent. */
export function taxOn(net: number, millipercent: number): number {
  return Math.floor((net * millipercent + 50_000) / 100_000)
}

/**
 * The value of `quantity` units of a line of `of` units, if `before` units have been refunded already. The shares of
 * one line add up to exactly its frozen amount, in whatever portions they are refunded. If a deal made some units of a
 * line cheaper, each unit still has an equal share, because their drops cannot be told apart.
 */
export function unitShare(amount: number, of: number, before: number, quantity: number): number {
  const upTo = (units: number): number => Math.floor((amount * units) / of)
  return upTo(before + quantity) - upTo(before)
}

/** A sales tax rate in percent, 0 to 99.999, with at most three decimals. */
export const TaxPercent = z
  .string()
  .regex(/^\d{1,2}(\.\d{1,3})?$/, 'must be a percentage below 100 with at most three decimals')

/** The same in thousandths of a percent, as `hubs.tax_millipercent` stores it. */
export const toMillipercent = (percent: z.infer<typeof TaxPercent>): number =>
  Math.round(Number(percent) * 1000)
