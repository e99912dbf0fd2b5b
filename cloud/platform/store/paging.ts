/** The offset of a page, capped at the largest safe integer. */
export const offsetOf = (page: number, size: number): number =>
  Math.min((page - 1) * size, Number.MAX_SAFE_INTEGER)
