import { sql } from 'kysely'

/** What a product costs after its own markdown, in cents, rounded half up (contract §6). */
export function discountedPrice(originalPrice: number, markdownPercent: number): number {
  return Math.floor((originalPrice * (100 - markdownPercent) + 50) / 100)
}

/** The same, of a row of `products`. */
export const discountedPriceSql = sql<number>`((products.original_price * (100 - products.markdown_percent) + 50) / 100)`
