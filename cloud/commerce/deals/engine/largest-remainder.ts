/**
 * Splits a whole amount over weights: each part is its share rounded down, and what is left goes, one each, to the greatest
 * remainders (of equal ones the first). The parts' sum is exactly the amount, and an amount no greater than the weights'
 * sum gives no part above its weight. All integers, not negative.
 */
export function splitByLargestRemainder(amount: number, weights: readonly number[]): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0)
  if (total === 0) {
    if (amount !== 0) throw new RangeError('nothing to split an amount over')
    return weights.map(() => 0)
  }
  // In exact integers: the products of two sums of cents do not fit a number.
  const shares = weights.map((weight) => {
    const product = BigInt(amount) * BigInt(weight)
    return { part: Number(product / BigInt(total)), remainder: Number(product % BigInt(total)) }
  })
  const left = amount - shares.reduce((sum, { part }) => sum + part, 0)
  const byRemainder = shares.map((_, index) => index)
  byRemainder.sort((a, b) => shares[b]!.remainder - shares[a]!.remainder || a - b)
  const rounded = new Set(byRemainder.slice(0, left))
  return shares.map(({ part }, index) => part + (rounded.has(index) ? 1 : 0))
}
