import { imageSizeOf } from '../image-size.ts'
import type { Parts } from './parts.ts'

/** The chunks that a decoder needs for the picture, its colours and its animation (PNG §11). */
const KEPT = new Set(
  'IHDR PLTE IDAT IEND tRNS cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI bKGD pHYs acTL fcTL fdAT'.split(' '),
)
const HEADER_BYTES = 24

/** Chunks of a length, a type, content and a checksum (PNG §5.3). */
export function* cleanPng(file: Parts): Generator<void> {
  if (yield* file.has(HEADER_BYTES)) file.hasSize(imageSizeOf('png', file.block.subarray(file.at)))
  file.requireSize()
  yield* file.pass(8)
  while (yield* file.has(8)) {
    file.count()
    const { block, at } = file
    const type = block.toString('latin1', at + 4, at + 8)
    const length = block.readUInt32BE(at) + 12
    yield* KEPT.has(type) ? file.pass(length) : file.skip(length)
    if (type === 'IEND') return
  }
  yield* file.pass(Infinity)
}
