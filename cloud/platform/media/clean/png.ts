import { imageSizeOf } from '../image-size.ts'
import type { Parts } from './parts.ts'

const METADATA = new Set(['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME'])
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
    yield* METADATA.has(type) ? file.skip(length) : file.pass(length)
    if (type === 'IEND') return
  }
  yield* file.pass(Infinity)
}
