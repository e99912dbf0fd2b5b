/** `start`: number of connections from which new ones are rejected by chance. `full`: the maximum number. */
export interface Crowd {
  start: number
  full: number
}

const FIRST_CHANCE = 0.3

/**
 * The probability that a new unauthenticated connection is rejected, before any cryptography. This is random
 * early drop, like OpenSSH's `MaxStartups`. Accepted connections are never dropped for new ones, so accepted
 * callers can finish. Because rejection is random, a flood gets places only in proportion to its attempts.
 */
export function dropChance(present: number, { start, full }: Crowd): number {
  if (present < start) return 0
  if (present >= full) return 1
  return FIRST_CHANCE + ((1 - FIRST_CHANCE) * (present - start)) / (full - start)
}
