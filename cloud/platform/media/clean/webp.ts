import { imageSizeOf } from '../image-size.ts'
import type { Parts } from './parts.ts'

/** The chunks that a decoder needs for the picture, its colours and its animation (RFC 9649 §2.7). */
const KEPT = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ANIM', 'ANMF', 'ICCP'])
const HEADER_BYTES = 30

/**
 * Chunks of a type, a length and content, padded to an even length (RFC 9649 §2.3). Other chunks are replaced by
 * zeros, because the file's length comes first.
 */
export function* cleanWebp(file: Parts): Generator<void> {
  if (yield* file.has(HEADER_BYTES)) file.hasSize(imageSizeOf('webp', file.block.subarray(file.at)))
  file.requireSize()
  let left = file.block.readUInt32LE(file.at + 4) - 4
  yield* file.pass(12)
  while (left >= 8) {
    if (!(yield* file.has(8))) return yield* file.pass(Infinity)
    file.count()
    const { block, at } = file
    const type = block.toString('latin1', at, at + 4)
    const length = block.readUInt32LE(at + 4)
    const padded = Math.min(left - 8, length + (length % 2))
    left -= 8 + padded
    yield* file.pass(8)
    yield* KEPT.has(type) ? file.pass(padded) : file.blank(padded)
  }
}
