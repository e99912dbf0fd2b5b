export interface ImageSize {
  width: number
  height: number
}

/**
 * The size of an image from its first 30 bytes; undefined if they contain no such header. A JPEG contains it later, in
 * its frame (`frameSizeOf`).
 */
export function imageSizeOf(extension: 'png' | 'gif' | 'webp', bytes: Buffer): ImageSize | undefined {
  switch (extension) {
    case 'png':
      return bytes.length < 24 ? undefined : size(bytes.readUInt32BE(16), bytes.readUInt32BE(20))
    case 'gif':
      return bytes.length < 10 ? undefined : size(bytes.readUInt16LE(6), bytes.readUInt16LE(8))
    case 'webp':
      return bytes.length < 30 ? undefined : sizeOfWebp(bytes)
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

/**
 * Whether a segment of a JPEG starts a frame: C0 to CF, except the tables C4 and CC and the reserved C8 (ITU T.81,
 * table B.1).
 */
export const isFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)

/** The size in the frame of a JPEG: marker, length, precision, height, width. */
export const frameSizeOf = (segment: Buffer): ImageSize | undefined =>
  segment.length < 9 ? undefined : size(segment.readUInt16BE(7), segment.readUInt16BE(5))
