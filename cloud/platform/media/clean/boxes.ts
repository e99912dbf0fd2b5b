import type { Parts } from './parts.ts'

/** The boxes that a player needs, by the box around them (ISO 14496-12 §6.2.3; QuickTime: `wide`, `tapt`, `load`). */
const KEPT: Readonly<Record<string, ReadonlySet<string>>> = {
  file: new Set(['ftyp', 'styp', 'moov', 'mdat', 'moof', 'mfra', 'sidx', 'ssix', 'pdin', 'wide']),
  moov: new Set(['mvhd', 'trak', 'mvex', 'iods', 'pssh']),
  trak: new Set(['tkhd', 'edts', 'mdia', 'tref', 'trgr', 'tapt', 'load']),
}

/**
 * Boxes of a length, a type and content (ISO 14496-12 §4.2). Other boxes become free space of the same length, because
 * the tables of the kept boxes contain byte offsets. A list holds the enclosing boxes, which avoids recursion.
 */
export function* cleanBoxes(file: Parts): Generator<void> {
  const around: { type: string; end: number }[] = []
  for (;;) {
    while (around.length > 0 && file.offset >= around.at(-1)!.end) around.pop()
    const { type: outer, end } = around.at(-1) ?? { type: 'file', end: Infinity }
    const left = end - file.offset
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
    if (!KEPT[outer]!.has(type)) {
      file.block.write('free', file.at + 4, 'latin1')
      yield* file.pass(headBytes)
      yield* file.blank(size - headBytes)
    } else if (type in KEPT) {
      around.push({ type, end: file.offset + size })
      yield* file.pass(headBytes)
    } else yield* file.pass(size)
  }
}
