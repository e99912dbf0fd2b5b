import { ByteSource } from './byte-source.ts'
import type { MediaType } from './media-type.ts'

/**
 * A file as it is kept: without what its maker's device wrote into it, such as the place and the time at which a picture was
 * taken, comments and previews; what follows behind its end is blank, so that no file is two. The picture itself, its colours and
 * which side of it is up stay as they are; nothing is compressed anew. What does not follow its format is passed on as it is.
 */
export async function* withoutMetadata(
  { extension }: MediaType,
  content: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const source = new ByteSource(content)
  yield* cleaners[extension]?.(source) ?? source.pass(Infinity)
  yield* blank(source, Infinity)
}

type Cleaner = (source: ByteSource) => AsyncGenerator<Uint8Array>

const cleaners: Readonly<Record<string, Cleaner>> = {
  png: cleanPng,
  jpg: cleanJpeg,
  gif: cleanGif,
  webp: cleanWebp,
  mp4: (source) => cleanBoxes(source, Infinity),
  mov: (source) => cleanBoxes(source, Infinity),
}

const PNG_METADATA = new Set(['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME'])

/** Chunks of a length, a type, that much content and a checksum (PNG §5.3). */
async function* cleanPng(source: ByteSource): AsyncGenerator<Uint8Array> {
  yield* source.pass(8)
  for (;;) {
    const head = await source.peek(8)
    if (head.length < 8) return yield* source.pass(Infinity)
    const type = head.toString('latin1', 4, 8)
    const length = head.readUInt32BE(0) + 12
    if (PNG_METADATA.has(type)) await source.skip(length)
    else yield* source.pass(length)
    if (type === 'IEND') return
  }
}

const SOS = 0xda
const EOI = 0xd9
const COMMENT = 0xfe

/** Segments of a marker, a length and that much content; behind SOS the picture until the next marker (ITU T.81, annex B). */
async function* cleanJpeg(source: ByteSource): AsyncGenerator<Uint8Array> {
  yield* source.pass(2)
  for (;;) {
    const head = await source.peek(4)
    const marker = head[1]
    if (head[0] !== 0xff || marker === undefined) return yield* source.pass(Infinity)
    if (marker === EOI) return yield* source.pass(2)
    if (marker === 0xff) {
      yield* source.pass(1)
      continue
    }
    if (head.length < 4) return yield* source.pass(Infinity)
    const segment = await source.take(2 + head.readUInt16BE(2))
    yield keptOf(marker, segment)
    if (marker === SOS) yield* passScan(source)
  }
}

/** What is kept of a segment: frames and tables, JFIF's, colour profiles and Adobe's; of Exif only which side is up. */
function keptOf(marker: number, segment: Buffer): Buffer {
  const isApplication = marker >= 0xe0 && marker <= 0xef
  if (marker !== COMMENT && !isApplication) return segment
  const isKept =
    marker === 0xe0 ||
    marker === 0xee ||
    (marker === 0xe2 && segment.toString('latin1', 4, 15) === 'ICC_PROFILE')
  if (isKept) return segment
  const orientation = marker === 0xe1 ? orientationOf(segment.subarray(4)) : undefined
  return orientation === undefined ? Buffer.alloc(0) : exifOf(orientation)
}

/** Everything up to the next marker that is none of a scan: FF 00 is a byte of it, D0 to D7 restart it. */
async function* passScan(source: ByteSource): AsyncGenerator<Uint8Array> {
  for (;;) {
    const bytes = await source.peek(65_536)
    let at = 0
    while (at >= 0 && at < bytes.length) {
      at = bytes.indexOf(0xff, at)
      const next = at < 0 ? undefined : bytes[at + 1]
      if (next !== undefined && next !== 0 && (next < 0xd0 || next > 0xd7)) return yield* source.pass(at)
      if (at >= 0) at += 2
    }
    // A marker may be cut in two at the end of what was looked at.
    const whole = bytes.at(-1) === 0xff ? bytes.length - 1 : bytes.length
    if (whole === 0) return yield* source.pass(Infinity)
    yield* source.pass(whole)
  }
}

const ORIENTATION = 0x0112

/** Of an Exif segment's content; undefined where it has none, or the usual one (TIFF 6.0 §2, §8). */
function orientationOf(content: Buffer): number | undefined {
  if (content.toString('latin1', 0, 6) !== 'Exif\0\0') return undefined
  const tiff = content.subarray(6)
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number): number =>
    at + 2 > tiff.length ? 0 : isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at)
  const first = tiff.length < 8 ? 0 : isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  for (let entry = 0; entry < short(first); entry += 1) {
    const at = first + 2 + entry * 12
    if (at + 12 > tiff.length) return undefined
    if (short(at) !== ORIENTATION) continue
    const value = short(at + 8)
    return value >= 2 && value <= 8 ? value : undefined
  }
  return undefined
}

/** An Exif segment that says nothing else. */
const exifOf = (orientation: number): Buffer =>
  Buffer.concat([
    Buffer.from([0xff, 0xe1, 0, 34]),
    Buffer.from('Exif\0\0MM\0*\0\0\0\x08\0\x01', 'latin1'),
    Buffer.from([ORIENTATION >> 8, ORIENTATION & 0xff, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]),
  ])

/** Application blocks that say how often an animation repeats; others are programs' notes. */
const GIF_KEPT = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0'])

/** Blocks by their first byte, most of them with sub-blocks (GIF89a §12, §15). */
async function* cleanGif(source: ByteSource): AsyncGenerator<Uint8Array> {
  yield* passWithColours(source, 13, 10)
  for (;;) {
    const head = await source.peek(14)
    if (head[0] === 0x2c) {
      yield* passWithColours(source, 10, 9)
      yield* source.pass(1)
      yield* passSubBlocks(source, 0)
    } else if (head[0] === 0x21) {
      const label = head[1]
      const isNote = label === COMMENT || (label === 0xff && !GIF_KEPT.has(head.toString('latin1', 3, 14)))
      const block = passSubBlocks(source, 2)
      if (!isNote) yield* block
      else for await (const _ of block);
    } else return yield* source.pass(head[0] === 0x3b ? 1 : Infinity)
  }
}

/** A descriptor, and the table of colours of which its flags at `flagsAt` tell. */
async function* passWithColours(
  source: ByteSource,
  length: number,
  flagsAt: number,
): AsyncGenerator<Uint8Array> {
  const flags = (await source.peek(length))[flagsAt] ?? 0
  yield* source.pass(length + (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0))
}

async function* passSubBlocks(source: ByteSource, before: number): AsyncGenerator<Uint8Array> {
  yield* source.pass(before)
  for (;;) {
    const [length = 0] = await source.peek(1)
    yield* source.pass(1 + length)
    if (length === 0) return
  }
}

const WEBP_METADATA = new Set(['EXIF', 'XMP '])

/** Chunks of a type, a length and that much content, filled to an even length (RFC 9649 §2.3). Blanked: the file tells its length first. */
async function* cleanWebp(source: ByteSource): AsyncGenerator<Uint8Array> {
  const header = await source.peek(12)
  if (header.length < 12) return yield* source.pass(Infinity)
  let left = header.readUInt32LE(4) - 4
  yield* source.pass(12)
  while (left >= 8) {
    const head = await source.peek(8)
    if (head.length < 8) return yield* source.pass(Infinity)
    const length = head.readUInt32LE(4)
    const padded = Math.min(left - 8, length + (length % 2))
    left -= 8 + padded
    yield* source.pass(8)
    if (WEBP_METADATA.has(head.toString('latin1', 0, 4))) yield* blank(source, padded)
    else yield* source.pass(padded)
  }
}

const CONTAINERS = new Set(['moov', 'trak'])
const BOX_METADATA = new Set(['udta', 'meta', 'uuid'])

/** Boxes of a length, a type and content (ISO 14496-12 §4.2). Blanked as free space: the tables of the others count bytes. */
async function* cleanBoxes(source: ByteSource, length: number): AsyncGenerator<Uint8Array> {
  for (let left = length; left > 0;) {
    const head = await source.peek(Math.min(left, 16))
    if (head.length < 8) return yield* source.pass(left)
    const type = head.toString('latin1', 4, 8)
    const short = head.readUInt32BE(0)
    const headLength = short === 1 ? 16 : 8
    if (head.length < headLength) return yield* source.pass(left)
    // 0: to the end of the file.
    const size = short === 1 ? Number(head.readBigUInt64BE(8)) : short === 0 ? left : short
    if (size < headLength || size > left) return yield* source.pass(left)
    left -= size
    if (BOX_METADATA.has(type)) {
      const free = Buffer.from(await source.take(headLength))
      free.write('free', 4, 'latin1')
      yield free
      yield* blank(source, size - headLength)
    } else {
      yield* source.pass(headLength)
      if (CONTAINERS.has(type)) yield* cleanBoxes(source, size - headLength)
      else yield* source.pass(size - headLength)
    }
  }
}

async function* blank(source: ByteSource, length: number): AsyncGenerator<Uint8Array> {
  for await (const piece of source.pass(length)) yield Buffer.alloc(piece.length)
}
