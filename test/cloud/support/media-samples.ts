import { encodePng } from '../../../cloud/demo/pictures.ts'

/**
 * Small files of every accepted type, and of some refused types. Their first bytes are those of real files.
 */

export const png = encodePng({ width: 8, height: 4, colourAt: (x, y) => [x * 30, y * 60, 90] })

const bytes = (...parts: (string | readonly number[])[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  )

export const jpeg = bytes(
  [0xff, 0xd8, 0xff, 0xe0, 0, 16],
  'JFIF\0',
  [1, 1, 0, 0, 1, 0, 1, 0, 0],
  [0xff, 0xc0, 0, 11, 8, 0, 8, 0, 16, 1, 1, 0x11, 0, 0xff, 0xd9],
)
export const gif = bytes(
  'GIF89a',
  [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255, 0x2c],
  [0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3b],
)
export const webp = bytes(
  'RIFF',
  [26, 0, 0, 0],
  'WEBPVP8L',
  [13, 0, 0, 0, 0x2f, 0, 0, 0, 0x10, 7, 16, 17, 17, 136, 136, 254, 7, 0],
)

const boxed = (brand: string, ...compatible: string[]): Buffer => {
  const size = 16 + 4 * compatible.length
  return bytes([0, 0, 0, size], 'ftyp', brand, [0, 0, 2, 0], ...compatible, [0, 0, 0, 8], 'free')
}
export const mp4 = boxed('isom', 'isom', 'iso2', 'avc1', 'mp41')
export const mov = boxed('qt  ', 'qt  ')
export const html = Buffer.from('<!doctype html><script>alert(1)</script>')
export const heic = boxed('heic', 'mif1', 'heic')
export const avif = boxed('avif', 'mif1', 'miaf')
export const m4a = boxed('M4A ', 'M4A ', 'mp42')

/** An EBML header (RFC 8794) with the elements that muxers write, and the start of a segment. */
const ebml = (documentType: string): Buffer => {
  const elements = bytes(
    [0x42, 0x86, 0x81, 1, 0x42, 0xf7, 0x81, 1, 0x42, 0xf2, 0x81, 4, 0x42, 0xf3, 0x81, 8],
    [0x42, 0x82, 0x80 | documentType.length],
    documentType,
    [0x42, 0x87, 0x81, 4, 0x42, 0x85, 0x81, 2],
  )
  const length = Buffer.alloc(8)
  length.writeUInt32BE(0x01000000, 0)
  length.writeUInt32BE(elements.length, 4)
  return bytes(
    [0x1a, 0x45, 0xdf, 0xa3],
    [...length],
    [...elements],
    [0x18, 0x53, 0x80, 0x67, 1, 255, 255, 255],
  )
}
export const webm = ebml('webm')
export const matroska = ebml('matroska')

/** A file of `size` bytes that begins with `head`. */
export const grown = (head: Buffer, size: number): Buffer =>
  Buffer.concat([head, Buffer.alloc(size - head.length)])

/** A file for `FormData`; its claimed type does not matter. */
export const fileOf = (content: Buffer, name: string, type = 'application/octet-stream'): File =>
  new File([new Uint8Array(content)], name, { type })

/** Text as bytes, one for each character. */
export const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
export const insert = (file: Buffer, at: number, ...parts: Buffer[]): Buffer =>
  Buffer.concat([file.subarray(0, at), ...parts, file.subarray(at)])

export const pngChunk = (type: string, content: string): Buffer => {
  const chunk = Buffer.alloc(12 + content.length)
  chunk.writeUInt32BE(content.length, 0)
  chunk.write(type + content, 4, 'latin1')
  return chunk
}
export const segment = (marker: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0xff, marker, (content.length + 2) >> 8, (content.length + 2) & 255]), content])
export const riffChunk = (type: string, content: string): Buffer => {
  const chunk = Buffer.alloc(8 + content.length + (content.length % 2))
  chunk.write(type, 0, 'latin1')
  chunk.writeUInt32LE(content.length, 4)
  chunk.write(content, 8, 'latin1')
  return chunk
}
export const box = (type: string, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, body])
}
export const riff = (...chunks: Buffer[]): Buffer => {
  const file = Buffer.concat([latin1('RIFF\0\0\0\0WEBP'), webp.subarray(12), ...chunks])
  file.writeUInt32LE(file.length - 8, 4)
  return file
}

/** `part` again and again, at most `most` bytes. */
export const many = (part: Buffer, most: number): Buffer =>
  Buffer.concat(Array.from({ length: Math.floor(most / part.length) }, () => part))
