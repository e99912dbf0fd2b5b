/**
 * Whether this machine knows a time zone by that name. What an operator typed wrong must not stop the money: such a hub's
 * days are those of UTC (`zoneFormats`).
 */
export function isZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en-US', { timeZone: name }))
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/** Formats of one kind, by zone: each is made once, for making one takes long. An unknown zone is UTC. */
export function zoneFormats(kind: Intl.DateTimeFormatOptions): (zone: string) => Intl.DateTimeFormat {
  const formats = new Map<string, Intl.DateTimeFormat>()
  return (zone) => {
    const known = formats.get(zone)
    if (known) return known
    const timeZone = isZone(zone) ? zone : 'UTC'
    const format = new Intl.DateTimeFormat('en-US', { ...kind, timeZone, numberingSystem: 'latn' })
    formats.set(zone, format)
    return format
  }
}
