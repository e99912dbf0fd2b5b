import type { MediaType } from './media-type.ts'

export interface ImageSize {
  width: number
  height: number
}

/**
 * The size of an image as its header says it; undefined where the bytes do not reach that far, or have no such header. In a
 * JPEG the header stands behind whatever a camera has written; in the others within the first 30 bytes.
 */
export function imageSizeOf({ extension }: MediaType, bytes: Buffer): ImageSize | undefined {
  switch (extension) {
    case 'png':
      return bytes.length < 24 ? undefined : size(bytes.readUInt32BE(16), bytes.readUInt32BE(20))
    case 'gif':
      return bytes.length < 10 ? undefined : size(bytes.readUInt16LE(6), bytes.readUInt16LE(8))
    case 'webp':
      return bytes.length < 30 ? undefined : sizeOfWebp(bytes)
    case 'jpg':
      return sizeOfJpeg(bytes)
    default:
      return undefined
  }
}

const size = (width: number, height: number): ImageSize | undefined =>
  width > 0 && height > 0 ? { width, height } : undefined

/** By its first chunk: simple, lossless or extended (RFC 9649 §2.5 to §2.7). */
function sizeOfWebp(bytes: Buffer): ImageSize | undefined {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return size(bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff)
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21)
      return size((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
    }
    case 'VP8X':
      return size(bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1)
    default:
      return undefined
  }
}

/** Start of frame: C0 to CF, but for the tables C4 and CC and the reserved C8 (ITU T.81, table B.1). */
const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
const START_OF_SCAN = 0xda

/** Goes from segment to segment until the one that begins the frame. */
function sizeOfJpeg(bytes: Buffer): ImageSize | undefined {
  for (let at = 2; at + 9 <= bytes.length;) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    // Any number of them may fill the space before a marker.
    if (marker === 0xff) {
      at += 1
      continue
    }
    if (isFrame(marker)) return size(bytes.readUInt16BE(at + 7), bytes.readUInt16BE(at + 5))
    if (marker === START_OF_SCAN) return undefined
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}
