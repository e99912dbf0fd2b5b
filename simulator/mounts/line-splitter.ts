import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'

/** Cuts a byte stream into lines with no more memory than the longest frame needs (SPEC §1). */
export function createLineSplitter(onLine: (line: string) => void): (bytes: Buffer) => void {
  let pending = ''
  return (bytes) => {
    const pieces = bytes.toString('latin1').split('\n')
    for (const [index, piece] of pieces.entries()) {
      // One byte more than a frame may have, so that the codec refuses what was cut off.
      if (pending.length <= MAX_LINE_BYTES + 1) pending += piece.slice(0, MAX_LINE_BYTES + 2 - pending.length)
      if (index === pieces.length - 1) return
      onLine(pending)
      pending = ''
    }
  }
}
