import { Readable } from 'node:stream'
import { assert, asyncProperty, constantFrom, nat } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withoutMetadata } from '../../../../cloud/platform/media/metadata.ts'
import { mediaTypeOf } from '../../../../cloud/platform/media/media-type.ts'
import { gif, jpeg, mov, mp4, png, webm, webp } from '../../support/media-samples.ts'

const SECRET = '48.2082 N 16.3738 E'

async function cleaned(file: Buffer, pieceBytes = file.length): Promise<Buffer> {
  function* pieces(): Generator<Buffer> {
    for (let at = 0; at < file.length; at += pieceBytes) yield file.subarray(at, at + pieceBytes)
  }
  const kept: Uint8Array[] = []
  for await (const piece of withoutMetadata(mediaTypeOf(file)!, Readable.from(pieces()))) kept.push(piece)
  return Buffer.concat(kept)
}

const blank = Buffer.alloc(SECRET.length)
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
const insert = (file: Buffer, at: number, ...parts: Buffer[]): Buffer =>
  Buffer.concat([file.subarray(0, at), ...parts, file.subarray(at)])

const pngChunk = (type: string, content: string): Buffer => {
  const chunk = Buffer.alloc(12 + content.length)
  chunk.writeUInt32BE(content.length, 0)
  chunk.write(type + content, 4, 'latin1')
  return chunk
}
const segment = (marker: number, content: Buffer): Buffer =>
  Buffer.concat([Buffer.from([0xff, marker, (content.length + 2) >> 8, (content.length + 2) & 255]), content])
const riffChunk = (type: string, content: string): Buffer => {
  const chunk = Buffer.alloc(8 + content.length + (content.length % 2))
  chunk.write(type, 0, 'latin1')
  chunk.writeUInt32LE(content.length, 4)
  chunk.write(content, 8, 'latin1')
  return chunk
}
const box = (type: string, ...content: Buffer[]): Buffer => {
  const body = Buffer.concat(content)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length)
  head.write(type, 4, 'latin1')
  return Buffer.concat([head, body])
}
/** With a place, and with which side is up, as cameras write it in either order of bytes. */
const exif = (orientation: number, isLittle: boolean): Buffer => {
  const tiff = Buffer.alloc(8 + 2 + 24 + 4)
  const short = (value: number, at: number) =>
    isLittle ? tiff.writeUInt16LE(value, at) : tiff.writeUInt16BE(value, at)
  const long = (value: number, at: number) =>
    isLittle ? tiff.writeUInt32LE(value, at) : tiff.writeUInt32BE(value, at)
  tiff.write(isLittle ? 'II' : 'MM', 'latin1')
  short(42, 2)
  long(8, 4)
  short(2, 8)
  for (const [index, tag] of [0x8825, 0x0112].entries()) {
    short(tag, 10 + index * 12)
    short(3, 12 + index * 12)
    long(1, 14 + index * 12)
    short(orientation, 18 + index * 12)
  }
  return segment(0xe1, Buffer.concat([latin1('Exif\0\0'), tiff, latin1(SECRET)]))
}
const riff = (...chunks: Buffer[]): Buffer => {
  const file = Buffer.concat([latin1('RIFF\0\0\0\0WEBP'), webp.subarray(12), ...chunks])
  file.writeUInt32LE(file.length - 8, 4)
  return file
}

/** A scan in which FF 00 and restarts stand, and one more behind another table. */
const scans = Buffer.concat([
  segment(0xda, Buffer.alloc(6)),
  Buffer.from([1, 0xff, 0, 2, 0xff, 0xd3, 3]),
  segment(0xc4, Buffer.from([0xff, 0xd9, 7])),
  segment(0xda, Buffer.alloc(6)),
  Buffer.from([9, 9, 9]),
])
const photo = insert(jpeg, jpeg.length - 2, scans)
const comment = segment(0xfe, latin1(SECRET))
const profile = segment(0xe2, latin1('ICC_PROFILE\0\x01\x01colours'))

const dirty: Readonly<Record<string, readonly [clean: Buffer, dirty: Buffer]>> = {
  'png: texts, times and Exif': [
    png,
    insert(png, 33, ...['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME'].map((type) => pngChunk(type, SECRET))),
  ],
  'png: what follows its end is blank': [Buffer.concat([png, blank]), Buffer.concat([png, latin1(SECRET)])],
  'jpeg: Exif, XMP, comments and previews, but not its colours': [
    insert(photo, 20, profile),
    insert(
      photo,
      20,
      exif(1, true),
      segment(0xe1, latin1(`http://ns.adobe.com/xap/1.0/\0${SECRET}`)),
      profile,
      segment(0xe2, latin1(`MPF\0${SECRET}`)),
      segment(0xed, latin1(SECRET)),
      comment,
    ),
  ],
  'jpeg: a comment between scans, and what follows its end': [
    Buffer.concat([photo, blank]),
    Buffer.concat([insert(photo, photo.length - 15, comment), latin1(SECRET)]),
  ],
  'gif: comments and programs’ notes, but not how often it repeats': [
    Buffer.concat([insert(gif, 19, latin1('\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0')), blank]),
    Buffer.concat([
      insert(
        gif,
        19,
        latin1(`\x21\xfe\x13${SECRET}\0`),
        latin1('\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0'),
        latin1(`\x21\xff\x0bXMP DataXMP\x13${SECRET}\0`),
      ),
      latin1(SECRET),
    ]),
  ],
  'webp: Exif and XMP are blank': [
    riff(riffChunk('EXIF', '\0'.repeat(19)), riffChunk('XMP ', '\0'.repeat(19))),
    riff(riffChunk('EXIF', SECRET), riffChunk('XMP ', SECRET)),
  ],
  'mp4: what a telephone writes about the place is blank, whichever box has it': [
    Buffer.concat([
      mp4,
      box(
        'moov',
        box('mvhd'),
        box('trak', box('tkhd'), box('free', Buffer.alloc(19))),
        box('free', Buffer.alloc(19)),
      ),
      box('free', Buffer.alloc(19)),
      box('mdat', latin1('film')),
    ]),
    Buffer.concat([
      mp4,
      box(
        'moov',
        box('mvhd'),
        box('trak', box('tkhd'), box('udta', latin1(SECRET))),
        box('meta', latin1(SECRET)),
      ),
      box('uuid', latin1(SECRET)),
      box('mdat', latin1('film')),
    ]),
  ],
}

describe('what the maker’s device wrote into a file is not kept', () => {
  test.for(Object.entries(dirty))('%s', async ([, [clean, file]]) => {
    expect(file.toString('latin1')).toContain(SECRET)
    for (const pieceBytes of [file.length, 1, 7])
      expect((await cleaned(file, pieceBytes)).equals(clean), `in pieces of ${pieceBytes}`).toBe(true)
  })
})

test.for([true, false])('of Exif it is kept which side is up (little endian: %s)', async (isLittle) => {
  const once = await cleaned(insert(jpeg, 2, exif(6, isLittle)))
  expect(once.length).toBe(jpeg.length + 36)
  expect(once.toString('latin1')).not.toContain(SECRET)
  expect((await cleaned(once)).equals(once)).toBe(true)
  // Of the 36 bytes the value is at 18 of the TIFF part, which begins behind the marker, the length and "Exif".
  expect(once.readUInt16BE(2 + 4 + 6 + 18)).toBe(6)
})

test('a file without metadata stays as it is', async () => {
  for (const file of [png, jpeg, photo, gif, webp, mp4, mov, webm]) expect(await cleaned(file)).toEqual(file)
})

test('what does not follow its format, or is cut short, is heard to its end', async () => {
  await assert(
    asyncProperty(
      constantFrom(png, photo, gif, webp, mp4),
      nat(),
      nat(255),
      nat(),
      async (file, at, byte, length) => {
        const broken = Buffer.from(file)
        if (at % file.length >= 16) broken[at % file.length] = byte
        const cut = broken.subarray(0, Math.max(16, length % (file.length + 1)))
        if (mediaTypeOf(cut)) expect((await cleaned(cut, 5)).length).toBeLessThanOrEqual(cut.length)
      },
    ),
  )
})
