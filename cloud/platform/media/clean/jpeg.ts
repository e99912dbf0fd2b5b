import { frameSizeOf, isFrame } from '../image-size.ts'
import type { Parts } from './parts.ts'

const SOS = 0xda
const EOI = 0xd9
/** Lengths of the segments of JFIF without a preview (JFIF 1.02) and of Adobe, with their markers. */
const JFIF_BYTES = 18
const ADOBE_BYTES = 16
/** Maximum distance of an image's header from the start. It follows the camera's metadata. */
const LONGEST_HEAD = 1024 * 1024

/**
 * Segments of a marker, a length and content. After SOS follows the picture until the next marker (ITU T.81, annex B).
 */
export function* cleanJpeg(file: Parts): Generator<void> {
  yield* file.pass(2)
  let hasFrame = false
  for (;;) {
    yield* fillBytes(file)
    if (!(yield* file.has(2))) return yield* file.pass(Infinity)
    const marker = file.block[file.at + 1]!
    if (file.block[file.at] !== 0xff) return yield* file.pass(Infinity)
    if (marker === EOI) return yield* file.pass(2)
    if (!(yield* file.has(4))) return yield* file.pass(Infinity)
    file.count()
    const length = 2 + file.block.readUInt16BE(file.at + 2)
    const isWhole = yield* file.has(length)
    const segment = file.block.subarray(file.at, file.at + length)
    if (!hasFrame && isFrame(marker)) {
      file.hasSize(frameSizeOf(segment))
      hasFrame = true
    }
    if (marker === SOS || file.offset > LONGEST_HEAD) file.requireSize()
    if (!isWhole) return yield* file.pass(Infinity)
    keep(file, marker, segment)
    if (marker === SOS) yield* scan(file)
  }
}

/** Any number of FF may precede a marker. */
function* fillBytes(file: Parts): Generator<void> {
  while (yield* file.has(2)) {
    const { block } = file
    let at = file.at
    while (at + 1 < block.length && block[at] === 0xff && block[at + 1] === 0xff) at += 1
    if (at === file.at) return
    file.keep(at - file.at)
  }
}

/**
 * Keeps frames and tables, the density of JFIF without its preview, colour profiles, Adobe's colour transform, and from
 * Exif only the orientation.
 */
function keep(file: Parts, marker: number, segment: Buffer): void {
  const holds = (name: string): boolean => segment.toString('latin1', 4, 4 + name.length) === name
  const isKept =
    (marker >= 0xc0 && marker <= 0xdf) ||
    (marker === 0xe0 && holds('JFIF\0') && segment.length === JFIF_BYTES) ||
    (marker === 0xee && holds('Adobe') && segment.length === ADOBE_BYTES) ||
    (marker === 0xe2 && holds('ICC_PROFILE\0'))
  if (isKept) return file.keep(segment.length)
  const orientation = marker === 0xe1 ? orientationOf(segment.subarray(4)) : undefined
  const density =
    marker === 0xe0 && holds('JFIF\0') && segment.length > JFIF_BYTES ? segment.subarray(9, 16) : undefined
  file.drop(segment.length)
  if (orientation !== undefined) file.insert(exifOf(orientation))
  if (density) file.insert(jfifOf(density))
}

/** Everything until the next marker outside the scan: FF 00 is a data byte of it, D0 to D7 restart it. */
function* scan(file: Parts): Generator<void> {
  while (yield* file.has(1)) {
    const { block } = file
    let at = file.at
    for (;;) {
      if (block[at] !== 0xff) {
        at = block.indexOf(0xff, at)
        if (at < 0) at = block.length
      }
      const next = block[at + 1]
      if (next === undefined) break
      if (next !== 0 && (next < 0xd0 || next > 0xd7)) return file.keep(at - file.at)
      at += 2
    }
    // The end of the block may split a marker.
    file.keep(at - file.at)
    if (!(yield* file.has(2))) return yield* file.pass(Infinity)
  }
}

const ORIENTATION = 0x0112

/** The orientation in the content of an Exif segment; undefined if it has none, or the usual one (TIFF 6.0 §2, §8). */
function orientationOf(content: Buffer): number | undefined {
  if (content.toString('latin1', 0, 6) !== 'Exif\0\0') return undefined
  const tiff = content.subarray(6)
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number): number =>
    at + 2 > tiff.length ? 0 : isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at)
  const first = tiff.length < 8 ? 0 : isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  const entries = short(first)
  for (let entry = 0; entry < entries; entry += 1) {
    const at = first + 2 + entry * 12
    if (at + 12 > tiff.length) return undefined
    if (short(at) !== ORIENTATION) continue
    const value = short(at + 8)
    return value >= 2 && value <= 8 ? value : undefined
  }
  return undefined
}

/** A JFIF segment without a preview. `density`: version, unit, and horizontal and vertical density. */
const jfifOf = (density: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0xff, 0xe0, 0, 16]), Buffer.from('JFIF\0'), density, Buffer.alloc(2)])

/** An Exif segment with nothing but the orientation. */
const exifOf = (orientation: number): Buffer =>
  Buffer.concat([
    Buffer.from([0xff, 0xe1, 0, 34]),
    Buffer.from('Exif\0\0MM\0*\0\0\0\x08\0\x01', 'latin1'),
    Buffer.from([ORIENTATION >> 8, ORIENTATION & 0xff, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0, 0, 0, 0, 0]),
  ])
