import { imageSizeOf } from '../image-size.ts'
import type { Parts } from './parts.ts'

const COMMENT = 0xfe
const APPLICATION = 0xff
/** Application blocks that set how often an animation repeats. Other application blocks are notes of programs. */
const KEPT = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0'])

/** Blocks by their first byte, most of them with sub-blocks (GIF89a §12, §15). */
export function* cleanGif(file: Parts): Generator<void> {
  if (yield* file.has(13)) file.hasSize(imageSizeOf('gif', file.block.subarray(file.at)))
  file.requireSize()
  yield* passWithColours(file, 13, 10)
  while (yield* file.has(1)) {
    file.count()
    const kind = file.block[file.at]
    if (kind === 0x2c) {
      yield* passWithColours(file, 10, 9)
      yield* file.pass(1)
      yield* subBlocks(file, true)
    } else if (kind === 0x21) {
      yield* file.has(14)
      const { block, at } = file
      const label = block[at + 1]
      const isNote =
        label === COMMENT || (label === APPLICATION && !KEPT.has(block.toString('latin1', at + 3, at + 14)))
      yield* isNote ? file.skip(2) : file.pass(2)
      yield* subBlocks(file, !isNote)
    } else return yield* file.pass(kind === 0x3b ? 1 : Infinity)
  }
}

/** A descriptor, and the colour table if the flags at `flagsAt` announce one. */
function* passWithColours(file: Parts, length: number, flagsAt: number): Generator<void> {
  yield* file.has(length)
  const flags = file.block[file.at + flagsAt] ?? 0
  yield* file.pass(length + (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0))
}

/** Sub-blocks of a length and content, until an empty one. All sub-blocks in a block are processed without a pause. */
function* subBlocks(file: Parts, areKept: boolean): Generator<void> {
  for (;;) {
    const { block } = file
    const start = file.at
    let at = start
    let isEnd = false
    while (!isEnd && at < block.length && at + 1 + block[at]! <= block.length) {
      isEnd = block[at] === 0
      at += 1 + block[at]!
    }
    if (areKept) file.keep(at - start)
    else file.drop(at - start)
    if (isEnd) return
    // The rest of the block is a part of a sub-block.
    const length = 1 + (block[at] ?? 0)
    if (!(yield* file.has(length))) return yield* areKept ? file.pass(Infinity) : file.skip(Infinity)
  }
}
