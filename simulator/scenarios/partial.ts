import type { Json } from './placeholders.ts'

/**
 * A sentence about the first difference from the expected value; undefined if there is none. Only expected parts are
 * compared. An object may have more keys. A list must contain a fitting item for each expected item; an expected empty
 * list must be empty.
 */
export function differenceOf(expected: Json, seen: unknown, path = ''): string | undefined {
  if (Array.isArray(expected)) {
    if (!Array.isArray(seen) || (expected.length === 0 && seen.length > 0))
      return sentence(path, expected, seen)
    for (const wanted of expected)
      if (!seen.some((one) => differenceOf(wanted, one) === undefined))
        return `${path || 'it'} has no ${show(wanted)}${closest(wanted, seen)}`
    return undefined
  }
  if (expected !== null && typeof expected === 'object') {
    if (seen === null || typeof seen !== 'object') return sentence(path, expected, seen)
    for (const [key, wanted] of Object.entries(expected)) {
      const value = (seen as Record<string, unknown>)[key]
      const difference = differenceOf(wanted, value, path === '' ? key : `${path}.${key}`)
      if (difference !== undefined) return difference
    }
    return undefined
  }
  return expected === seen ? undefined : sentence(path, expected, seen)
}

const sentence = (path: string, expected: Json, seen: unknown): string =>
  `${path || 'it'} is ${show(seen)}, not ${show(expected)}`

/** The closest candidates: the item with the same name or number, or all. */
function closest(wanted: Json, seen: readonly unknown[]): string {
  if (seen.length === 0) return ': it is empty'
  if (wanted === null || typeof wanted !== 'object' || Array.isArray(wanted)) return `; it has ${show(seen)}`
  const [key] = Object.keys(wanted)
  const same = seen.find((one) => (one as Record<string, unknown> | null)?.[key!] === wanted[key!])
  const difference = same === undefined ? undefined : differenceOf(wanted, same)
  return difference === undefined ? `; it has ${show(seen)}` : `: there ${difference}`
}

const MOST = 300

export function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > MOST ? `${text.slice(0, MOST)}…` : text
}
