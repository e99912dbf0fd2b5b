/** Where a page begins. No list is so long that it matters beyond what a number holds. */
export const offsetOf = (page: number, size: number): number =>
  Math.min((page - 1) * size, Number.MAX_SAFE_INTEGER)
