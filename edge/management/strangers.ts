/** From how many connections on chance turns one more away, and how many there are at most. */
export interface Crowd {
  start: number
  full: number
}

const FIRST_CHANCE = 0.3

/**
 * With what chance one more stranger is turned away, at once and before any cryptography, when so many are there: random
 * early drop, as OpenSSH's `MaxStartups` has it. Nobody who is being served makes room for another, so that whoever has got
 * in can finish; and as chance decides, a flood takes places only in the measure of its tries.
 */
export function dropChance(present: number, { start, full }: Crowd): number {
  if (present < start) return 0
  if (present >= full) return 1
  return FIRST_CHANCE + ((1 - FIRST_CHANCE) * (present - start)) / (full - start)
}
