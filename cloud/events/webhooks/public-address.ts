import { BlockList, isIP } from 'node:net'

/** IPv4 addresses that are not hosts of the internet: IANA's special-purpose registry, multicast, and reserved ones. */
const notPublic4 = new BlockList()
for (const [address, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const)
  notPublic4.addSubnet(address, prefix, 'ipv4')

/** Of IPv6 only 2000::/3 is assigned. It contains no mapped, translated or local addresses. */
const global6 = new BlockList()
global6.addSubnet('2000::', 3, 'ipv6')
/** Exceptions within it: protocols such as Teredo, documentation, and 6to4, which embeds an IPv4 address. */
const notPublic6 = new BlockList()
for (const [address, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const)
  notPublic6.addSubnet(address, prefix, 'ipv6')

/** Whether an address belongs to the public internet. */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !notPublic4.check(address, 'ipv4')
    case 6:
      return global6.check(address, 'ipv6') && !notPublic6.check(address, 'ipv6')
    default:
      return false
  }
}

/** Names below these belong to a machine or its network (RFC 6761, 6762, 8375, and usual entries of hosts files). */
const localNames = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'intranet',
  'lan',
  'home.arpa',
  'invalid',
  'onion',
]

/**
 * Whether a host name never belongs to the public internet, whatever a name server answers. `isPublic` checks
 * addresses.
 */
export function isLocalName(hostname: string): boolean {
  const name = hostname.toLowerCase().replace(/\.+$/, '')
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0) return false
  // A name without a dot is resolved in the machine's own domain: ip6-localhost, router.
  return !name.includes('.') || localNames.some((local) => name.endsWith(`.${local}`))
}
