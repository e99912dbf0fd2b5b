import type { Parts } from './parts.ts'

const CONTAINERS = new Set(['moov', 'trak'])
const METADATA = new Set(['udta', 'meta', 'uuid'])

/**
 * Boxes of a length, a type and content (ISO 14496-12 §4.2). Metadata becomes free space of the same length, because
 * the tables of other boxes contain byte offsets. A list holds the ends of the enclosing boxes, which avoids recursion.
 */
export function* cleanBoxes(file: Parts): Generator<void> {
  const ends: number[] = []
  for (;;) {
    while (ends.length > 0 && file.offset >= ends.at(-1)!) ends.pop()
    const left = (ends.at(-1) ?? Infinity) - file.offset
    if (left < 8) {
      yield* file.pass(left)
      continue
    }
    if (!(yield* file.has(8))) return yield* file.pass(Infinity)
    file.count()
    const type = file.block.toString('latin1', file.at + 4, file.at + 8)
    const short = file.block.readUInt32BE(file.at)
    const headBytes = short === 1 ? 16 : 8
    if (!(yield* file.has(headBytes))) return yield* file.pass(Infinity)
    // 0: until the end of the enclosing box, or of the file.
    const size = short === 1 ? Number(file.block.readBigUInt64BE(file.at + 8)) : short === 0 ? left : short
    if (size < headBytes || size > left)
      file.refuse('one of its boxes is larger than the box around it, or smaller than its own head')
    if (METADATA.has(type)) {
      file.block.write('free', file.at + 4, 'latin1')
      yield* file.pass(headBytes)
      yield* file.blank(size - headBytes)
    } else if (CONTAINERS.has(type)) {
      const end = file.offset + size
      yield* file.pass(headBytes)
      ends.push(end)
      file.enter(ends.length)
    } else yield* file.pass(size)
  }
}
