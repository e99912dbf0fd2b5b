/** The quantities that a person may enter for a row: one rule for the API, the hub and its page. */

/** Why `units` cannot be the count of a row that holds `capacity`; undefined if it can. */
export function countProblem(units: number, capacity: number): string | undefined {
  if (!Number.isInteger(units) || units < 0) return 'must be a whole number, 0 or more'
  return units > capacity ? `the row holds ${capacity} units` : undefined
}

/** Why `units` cannot be added to a row that has `quantity` and holds `capacity`; undefined if they can. */
export function restockProblem(
  units: number,
  { quantity, capacity }: { quantity: number; capacity: number },
): string | undefined {
  if (!Number.isInteger(units) || units < 1) return 'must be a whole number, 1 or more'
  const room = Math.max(0, capacity - quantity)
  return units > room ? `the row holds ${capacity} units and has room for ${room}` : undefined
}
