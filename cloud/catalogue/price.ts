/** What a product costs after its own markdown, in cents, rounded half up (contract §6). */
export function discountedPrice(originalPrice: number, markdownPercent: number): number {
  return Math.floor((originalPrice * (100 - markdownPercent) + 50) / 100)
}
