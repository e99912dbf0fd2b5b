/**
 * The network that limits count for an address: an IPv4 address (/32), or the first 64 bits of an IPv6 address, which
 * one subscriber has. Accepts the forms of sockets and of `X-Forwarded-For`: IPv4-mapped IPv6, brackets, a port, a
 * zone, any spelling of IPv6. Any other text is its own network.
 */
export function networkOf(address: string): string {
  const bare = bareAddress(address)
  if (IPV4.test(bare)) return bare
  const groups = groupsOf(bare)
  if (groups === undefined) return bare
  const mapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (mapped) return [groups[6]! >> 8, groups[6]! & 255, groups[7]! >> 8, groups[7]! & 255].join('.')
  const head = groups.slice(0, 4).map((group) => group.toString(16))
  return `${head.join(':')}::/64`
}

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/

/** The address without quotes, brackets, port and zone. */
function bareAddress(text: string): string {
  const trimmed = text.trim().replaceAll('"', '').toLowerCase()
  const bracketed = /^\[([^\]]*)\](:\d+)?$/.exec(trimmed)?.[1]
  const withoutPort = /^(\d{1,3}(?:\.\d{1,3}){3}):\d+$/.exec(trimmed)?.[1]
  return (bracketed ?? withoutPort ?? trimmed).replace(/%.*$/, '')
}

/** The eight 16-bit groups of an IPv6 address; undefined for other texts. */
function groupsOf(address: string): number[] | undefined {
  const dotted = /^(.*:)(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address)
  const text = dotted ? dotted[1]! + lastGroups(dotted.slice(2).map(Number)) : address
  const [head = '', tail, ...more] = text.split('::')
  if (more.length > 0 || !text.includes(':')) return undefined
  const read = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const [before, after] = [read(head), read(tail ?? '')]
  const missing = 8 - before.length - after.length
  if (tail === undefined ? missing !== 0 : missing < 0) return undefined
  const groups = [...before, ...Array.from({ length: missing }, () => '0'), ...after]
  if (!groups.every((group) => /^[\da-f]{1,4}$/.test(group))) return undefined
  return groups.map((group) => Number.parseInt(group, 16))
}

const lastGroups = ([a = 0, b = 0, c = 0, d = 0]: number[]): string =>
  `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`

/**
 * The address in `X-Forwarded-For` that the outermost of `trustedProxies` proxies wrote. Each proxy appends one entry, so that
 * entries further left are the caller's own. Undefined if there are too few.
 */
export function forwardedAddress(
  header: string | readonly string[] | undefined,
  trustedProxies: number,
): string | undefined {
  if (trustedProxies === 0 || header === undefined) return undefined
  const entries = String(header).split(',')
  return entries.at(-trustedProxies)?.trim() || undefined
}
