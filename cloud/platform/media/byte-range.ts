import type { ByteRange } from './store.ts'

/** What a request says of the copy that it has, and of the part that it wants. */
export interface Conditions {
  range: string | undefined
  ifRange: string | undefined
  ifNoneMatch: string | undefined
}

export type Selection =
  | { kind: 'whole' }
  | { kind: 'part'; range: ByteRange }
  | { kind: 'not-modified' }
  | { kind: 'unsatisfiable' }

/**
 * Which part of a file of `size` bytes answers a request (RFC 9110 §13, §14). More than one range, and what is no range at
 * all, is answered with the whole.
 */
export function selectBytes(
  { range, ifRange, ifNoneMatch }: Conditions,
  { size, etag }: { size: number; etag: string },
): Selection {
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, etag)) return { kind: 'not-modified' }
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'whole' }
  const parts = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.trim())
  if (!parts) return { kind: 'whole' }
  const [, from = '', to = ''] = parts
  if (from === '' && to === '') return { kind: 'whole' }
  if (from === '') return last(Number(to))
  const first = Number(from)
  const end = to === '' ? size - 1 : Number(to)
  if (end < first && to !== '') return { kind: 'whole' }
  if (first >= size) return { kind: 'unsatisfiable' }
  return { kind: 'part', range: { first, last: Math.min(end, size - 1) } }

  function last(count: number): Selection {
    if (count === 0 || size === 0) return { kind: 'unsatisfiable' }
    return { kind: 'part', range: { first: Math.max(0, size - count), last: size - 1 } }
  }
}

const matches = (header: string, etag: string): boolean =>
  header
    .split(',')
    .map((each) => each.trim().replace(/^W\//, ''))
    .some((each) => each === '*' || each === etag)
