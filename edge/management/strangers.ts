import { isIPv6 } from 'node:net'

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

/** Who shares a crowd: an IPv4 address, or the network that one host of IPv6 has to itself (/64). */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address
  const [head = '', tail] = address.replace(/%.*$/, '').split('::')
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - before.length - after.length }, () => '0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}
