type MediaKind = 'image' | 'video'

export interface MediaType {
  kind: MediaKind
  mimeType: string
  /** The extension of the stored file. */
  extension: string
}

/** The number of leading bytes that determine a file's type. A shorter file is read completely. */
export const HEAD_BYTES = 4096

const png: MediaType = { kind: 'image', mimeType: 'image/png', extension: 'png' }
const jpeg: MediaType = { kind: 'image', mimeType: 'image/jpeg', extension: 'jpg' }
const gif: MediaType = { kind: 'image', mimeType: 'image/gif', extension: 'gif' }
const webp: MediaType = { kind: 'image', mimeType: 'image/webp', extension: 'webp' }
const mp4: MediaType = { kind: 'video', mimeType: 'video/mp4', extension: 'mp4' }
const mov: MediaType = { kind: 'video', mimeType: 'video/quicktime', extension: 'mov' }
const webm: MediaType = { kind: 'video', mimeType: 'video/webm', extension: 'webm' }

/** Every accepted type. */
export const mediaTypes: readonly MediaType[] = [png, jpeg, gif, webp, mp4, mov, webm]

/** The type of a file from its first bytes; undefined if the service does not accept it. */
export function mediaTypeOf(head: Uint8Array): MediaType | undefined {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  if (startsWith(bytes, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) && text(bytes, 12, 4) === 'IHDR')
    return png
  if (startsWith(bytes, [0xff, 0xd8, 0xff])) return jpeg
  if (/^GIF8[79]a$/.test(text(bytes, 0, 6))) return gif
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 4) === 'WEBP' && /^VP8[ LX]$/.test(text(bytes, 12, 4)))
    return webp
  if (text(bytes, 4, 4) === 'ftyp' && bytes.length >= 16) return typeOfBrand(text(bytes, 8, 4))
  if (startsWith(bytes, EBML) && documentTypeOf(bytes) === 'webm') return webm
  return undefined
}

/** Major brands of ISO base media files that are MP4 video; the others are HEIC and AVIF images, audio, 3GP, … */
const mp4Brands = /^(iso[m2-9]|mp4[12]|mp71|avc1|M4V[ HP]|MSNV|dash|XAVC)$/

function typeOfBrand(brand: string): MediaType | undefined {
  if (brand === 'qt  ') return mov
  return mp4Brands.test(brand) ? mp4 : undefined
}

const EBML = [0x1a, 0x45, 0xdf, 0xa3]
const DOC_TYPE = 0x4282

/** The document type in an EBML header (RFC 8794 §11.2). The rest of the header is equal in WebM and Matroska. */
function documentTypeOf(bytes: Buffer): string | undefined {
  const header = sizeAt(bytes, EBML.length)
  if (!header) return undefined
  const end = Math.min(bytes.length, header.next + header.size)
  for (let at = header.next; at < end;) {
    // Within the header every id has one or two bytes.
    const idLength = bytes[at]! & 0x80 ? 1 : 2
    if (at + idLength > end) return undefined
    const id = bytes.readUIntBE(at, idLength)
    const element = sizeAt(bytes, at + idLength)
    if (!element || element.next + element.size > end) return undefined
    if (id === DOC_TYPE) return text(bytes, element.next, element.size).replace(/\0+$/, '')
    at = element.next + element.size
  }
  return undefined
}

/** A variable-length size of EBML (RFC 8794 §4). The position of its first set bit is its number of bytes. */
function sizeAt(bytes: Buffer, at: number): { size: number; next: number } | undefined {
  const length = Math.clz32(bytes[at] ?? 0) - 23
  if (length > 8 || at + length > bytes.length) return undefined
  const size = bytes
    .subarray(at + 1, at + length)
    .reduce((value, byte) => value * 256 + byte, bytes[at]! & (0xff >> length))
  return { size, next: at + length }
}

const startsWith = (bytes: Buffer, prefix: readonly number[]): boolean =>
  prefix.every((byte, index) => bytes[index] === byte)

const text = (bytes: Buffer, at: number, length: number): string => bytes.toString('latin1', at, at + length)
