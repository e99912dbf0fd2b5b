import { assert, constantFrom, nat, property } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Cleaner } from '../../../../cloud/platform/media/clean/cleaner.ts'
import { RefusedFile, type CleaningLimits } from '../../../../cloud/platform/media/clean/parts.ts'
import { mediaTypeOf } from '../../../../cloud/platform/media/media-type.ts'
import {
  box,
  gif,
  insert,
  jpeg,
  latin1,
  many,
  mov,
  mp4,
  png,
  pngChunk,
  riff,
  riffChunk,
  segment,
  webm,
  webp,
} from '../../support/media-samples.ts'

const SECRET = '48.2082 N 16.3738 E'
const LIMITS: CleaningLimits = { parts: 20_000, pixels: 50_000_000, processorMs: 60_000 }

function cleaned(file: Buffer, pieceBytes = 64 * 1024, limits: Partial<CleaningLimits> = {}): Buffer {
  const cleaner = new Cleaner(mediaTypeOf(file)!.extension, { ...LIMITS, ...limits })
  const kept: Buffer[] = []
  for (let at = 0; at < file.length; at += pieceBytes)
    kept.push(Buffer.from(cleaner.push(Buffer.from(file.subarray(at, at + pieceBytes)))))
  kept.push(cleaner.end())
  return Buffer.concat(kept)
}

/** The reason why a file is refused; undefined if it is accepted. */
function refusalOf(file: Buffer, limits: Partial<CleaningLimits> = {}): unknown {
  try {
    cleaned(file, undefined, limits)
    return undefined
  } catch (error) {
    if (error instanceof RefusedFile) return error.refusal
    throw error
  }
}

const blank = Buffer.alloc(SECRET.length)
/** Exif with a place and an orientation, in either byte order of cameras. */
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
/** A scan that contains FF 00 and restarts, and another scan after a further table. */
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
  'png: texts, times, Exif and chunks that no standard names': [
    png,
    insert(
      png,
      33,
      ...['tEXt', 'zTXt', 'iTXt', 'eXIf', 'tIME', 'prVt'].map((type) => pngChunk(type, SECRET)),
    ),
  ],
  'png: bytes after its end become blank': [
    Buffer.concat([png, blank]),
    Buffer.concat([png, latin1(SECRET)]),
  ],
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
  'jpeg: the previews of JFIF, and what other programs store in their segments': [
    photo,
    Buffer.concat([
      photo.subarray(0, 2),
      segment(0xe0, Buffer.concat([photo.subarray(6, 18), Buffer.from([6, 1]), latin1(SECRET.slice(0, 18))])),
      segment(0xe0, latin1(`JFXX\0\x13${SECRET}`)),
      segment(0xee, latin1(`Adobe\0d\0\0\0\0\x01${SECRET}`)),
      segment(0xee, latin1(SECRET)),
      segment(0xf7, latin1(SECRET)),
      photo.subarray(20),
    ]),
  ],
  'jpeg: a comment between scans, and bytes after its end': [
    Buffer.concat([photo, blank]),
    Buffer.concat([insert(photo, photo.length - 15, comment), latin1(SECRET)]),
  ],
  'gif: comments and programs’ notes, but not its number of repetitions': [
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
  'webp: Exif, XMP and chunks that no standard names become blank': [
    riff(...['EXIF', 'XMP ', 'note'].map((type) => riffChunk(type, '\0'.repeat(19)))),
    riff(...['EXIF', 'XMP ', 'note'].map((type) => riffChunk(type, SECRET))),
  ],
  'mp4: the place from a phone becomes blank, in any box': [
    Buffer.concat([
      mp4,
      box(
        'moov',
        box('mvhd'),
        box('trak', box('tkhd'), box('free', Buffer.alloc(19))),
        box('free', Buffer.alloc(19)),
      ),
      box('free', Buffer.alloc(19)),
      box('free', Buffer.alloc(19)),
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
      box('free', latin1(SECRET)),
      box('GPMF', latin1(SECRET)),
      box('mdat', latin1('film')),
    ]),
  ],
}

describe('removal of metadata', () => {
  test.for(Object.entries(dirty))('the cleaner removes metadata: %s', ([, [clean, file]]) => {
    expect(file.toString('latin1')).toContain(SECRET)
    for (const pieceBytes of [file.length, 1, 7])
      expect(cleaned(file, pieceBytes).equals(clean), `in pieces of ${pieceBytes}`).toBe(true)
  })
})

test.for([true, false])('the cleaner keeps the orientation of Exif (little endian: %s)', (isLittle) => {
  const once = cleaned(insert(jpeg, 2, exif(6, isLittle)))
  expect(once.length).toBe(jpeg.length + 36)
  expect(once.toString('latin1')).not.toContain(SECRET)
  expect(cleaned(once).equals(once)).toBe(true)
  // The value is at byte 18 of the TIFF part, behind the marker, the length and "Exif".
  expect(once.readUInt16BE(2 + 4 + 6 + 18)).toBe(6)
})

test('a file without metadata is unchanged', () => {
  for (const file of [png, jpeg, photo, gif, webp, mp4, mov, webm]) expect(cleaned(file)).toEqual(file)
})

test('a broken or truncated file is refused, or kept up to its end', () => {
  assert(
    property(constantFrom(png, photo, gif, webp, mp4), nat(), nat(255), nat(), (file, at, byte, length) => {
      const broken = Buffer.from(file)
      if (at % file.length >= 16) broken[at % file.length] = byte
      const cut = broken.subarray(0, Math.max(16, length % (file.length + 1)))
      if (!mediaTypeOf(cut) || refusalOf(cut)) return
      expect(cleaned(cut, 5).length).toBeLessThanOrEqual(cut.length)
    }),
  )
})

test('the result does not depend on the division of a file into blocks', () => {
  const files = [png, photo, gif, webp, mp4, ...Object.values(dirty).flat()]
  assert(
    property(constantFrom(...files), nat({ max: 100 }), (file, pieceBytes) => {
      expect(cleaned(file, pieceBytes + 1)).toEqual(cleaned(file))
    }),
  )
})

describe('the size of an image', () => {
  const frame = (height: number, width: number) =>
    segment(0xc0, Buffer.from([8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0]))
  const withSize = {
    png: (() => {
      const file = Buffer.from(png)
      file.writeUInt32BE(9000, 16)
      file.writeUInt32BE(7000, 20)
      return file
    })(),
    gif: Buffer.concat([latin1('GIF89a'), Buffer.from([0x28, 0x23, 0x58, 0x1b]), gif.subarray(10)]),
    jpeg: Buffer.concat([jpeg.subarray(0, 20), frame(7000, 9000), Buffer.from([0xff, 0xd9])]),
    'webp, extended': Buffer.concat([
      latin1('RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0'),
      Buffer.from([9000 - 1, (9000 - 1) >> 8, 0, 7000 - 1, (7000 - 1) >> 8, 0]),
    ]),
    'webp, lossy': Buffer.concat([
      latin1('RIFF\0\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a'),
      Buffer.from([0x28, 0x23, 0x58, 0x1b]),
    ]),
  }

  test.for(Object.entries(withSize))(
    'the image size of %s is compared with the limit of pixels',
    ([, file]) => {
      expect(refusalOf(file, { pixels: 9000 * 7000 })).toBeUndefined()
      expect(refusalOf(file, { pixels: 9000 * 7000 - 1 })).toEqual({
        kind: 'pixels',
        size: { width: 9000, height: 7000 },
      })
    },
  )

  test('the image size of a JPEG is found after the camera’s data, and must exist', () => {
    const exifs = Array.from({ length: 5 }, () => segment(0xe1, Buffer.alloc(65_533, 7)))
    const withExif = insert(withSize.jpeg, 2, ...exifs)
    expect(refusalOf(withExif, { pixels: 1000 })).toMatchObject({ kind: 'pixels' })
    const missing = { kind: 'structure', reason: 'it does not say how large its image is' }
    for (const file of [
      jpeg.subarray(0, 20),
      Buffer.concat([jpeg.subarray(0, 20), segment(0xda, Buffer.alloc(6)), Buffer.alloc(5000)]),
      Buffer.concat([jpeg.subarray(0, 2), Buffer.alloc(5000, 0xff)]),
      insert(withSize.jpeg, 2, ...Array.from({ length: 20 }, () => segment(0xe1, Buffer.alloc(65_533, 7)))),
      png.subarray(0, 18),
      latin1('GIF89a'),
      webp.subarray(0, 20),
    ])
      expect(refusalOf(file)).toEqual(missing)
  })
})

const SIZE = 5_000_000
/** Files of about 5 MB that are designed to need much work. Each is refused for its structure, or cleaned. */
const attacks: Readonly<Record<string, readonly [file: () => Buffer, isRefused: boolean]>> = {
  'jpeg: a scan of FF': [
    () =>
      Buffer.concat([
        jpeg.subarray(0, -2),
        segment(0xda, Buffer.alloc(6)),
        Buffer.alloc(SIZE, 0xff),
        Buffer.from([0xd9]),
      ]),
    false,
  ],
  'jpeg: fill bytes before a marker': [
    () => Buffer.concat([jpeg.subarray(0, -2), Buffer.alloc(SIZE, 0xff), Buffer.from([0xff, 0xd9])]),
    false,
  ],
  'jpeg: a scan of stuffed bytes and restarts': [
    () =>
      Buffer.concat([
        jpeg.subarray(0, -2),
        segment(0xda, Buffer.alloc(6)),
        many(Buffer.from([0xff, 0, 0xff, 0xd0]), SIZE),
      ]),
    false,
  ],
  'jpeg: empty segments': [() => insert(jpeg, 20, many(segment(0xe1, Buffer.alloc(0)), SIZE)), true],
  'jpeg: empty scans': [
    () => insert(jpeg, jpeg.length - 2, many(segment(0xda, Buffer.alloc(0)), SIZE)),
    true,
  ],
  'jpeg: Exif with 65,535 entries': [
    () =>
      insert(
        jpeg,
        2,
        many(
          segment(0xe1, Buffer.concat([latin1('Exif\0\0MM\0*\0\0\0\x08\xff\xff'), Buffer.alloc(65_000)])),
          900_000,
        ),
      ),
    false,
  ],
  'png: empty texts': [() => insert(png, 33, many(pngChunk('tEXt', ''), SIZE)), true],
  'png: empty pictures': [() => insert(png, 33, many(pngChunk('IDAT', ''), SIZE)), true],
  'gif: extensions of three bytes': [() => insert(gif, 19, many(latin1('\x21\xf9\0'), SIZE)), true],
  'gif: comments of three bytes': [() => insert(gif, 19, many(latin1('\x21\xfe\0'), SIZE)), true],
  'gif: frames without content': [
    () => insert(gif, 19, many(latin1('\x2c\0\0\0\0\x01\0\x01\0\0\x02\0'), SIZE)),
    true,
  ],
  'gif: sub-blocks of one byte': [
    () => insert(gif, 19, latin1('\x21\xf9'), many(latin1('\x01x'), SIZE), latin1('\0')),
    false,
  ],
  'gif: a comment of sub-blocks of one byte': [
    () => insert(gif, 19, latin1('\x21\xfe'), many(latin1('\x01x'), SIZE), latin1('\0')),
    false,
  ],
  'webp: empty chunks': [() => riff(many(riffChunk('ICCP', ''), SIZE)), true],
  'webp: empty metadata': [() => riff(many(riffChunk('EXIF', ''), SIZE)), true],
  'mp4: empty boxes': [() => Buffer.concat([mp4, many(box('free'), SIZE)]), true],
  'mp4: empty metadata': [() => Buffer.concat([mp4, many(box('udta'), SIZE)]), true],
  'mov: boxes within boxes with empty boxes': [
    () => {
      let inner = many(box('free'), 160_000)
      for (let depth = 0; depth < 2000; depth += 1) inner = box(depth % 2 ? 'moov' : 'trak', inner)
      return Buffer.concat([mov, inner])
    },
    false,
  ],
  'mp4: 100,000 boxes one within another': [
    () => {
      const heads = Buffer.alloc(8 * 100_000)
      for (let at = 0; at < heads.length; at += 8) {
        heads.writeUInt32BE(heads.length - at, at)
        heads.write('trak', at + 4, 'latin1')
      }
      return Buffer.concat([mp4, heads])
    },
    false,
  ],
  'webm: anything': [() => Buffer.concat([webm, Buffer.alloc(SIZE, 0x1a)]), false],
}

describe('files designed to need much work', () => {
  test.for(Object.entries(attacks))(
    'a file designed to need much work needs little: %s',
    ([, [make, isRefused]]) => {
      const file = make()
      const refusal = refusalOf(file)
      expect(refusal).toEqual(
        isRefused ? { kind: 'structure', reason: expect.any(String) as string } : undefined,
      )
      // The minimum of three: a busy machine makes some of them slower.
      const times = [1, 2, 3].map(() => {
        const before = process.cpuUsage()
        refusalOf(file)
        const { user, system } = process.cpuUsage(before)
        return (user + system) / 1000
      })
      expect(Math.min(...times)).toBeLessThan(100)
    },
  )
})

test('a box of a film at a place where no player expects it becomes blank', () => {
  const misplaced = Buffer.concat([
    mp4,
    box('moov', box('moov', latin1(SECRET))),
    box('trak', latin1(SECRET)),
  ])
  const blanked = Buffer.concat([mp4, box('moov', box('free', blank)), box('free', blank)])
  expect(cleaned(misplaced).equals(blanked)).toBe(true)
})

test('a box larger than its outer box is refused', () => {
  const inner = box('free', Buffer.alloc(8))
  inner.writeUInt32BE(17, 0)
  expect(refusalOf(Buffer.concat([mp4, box('moov', inner)]))).toMatchObject({ kind: 'structure' })
})

test('a file may have a maximum number of parts', () => {
  const texts = (count: number) => insert(png, 33, many(pngChunk('tEXt', ''), 12 * count))
  const own = 3
  expect(refusalOf(texts(20), { parts: 20 + own })).toBeUndefined()
  expect(refusalOf(texts(21), { parts: 20 + own })).toMatchObject({ kind: 'structure' })
})

test('a file that exceeds its processor time is refused', () => {
  let now = 0
  const cleaner = new Cleaner('png', { ...LIMITS, processorMs: 100 }, () => (now += 30))
  cleaner.push(Buffer.from(png.subarray(0, 40)))
  cleaner.push(Buffer.from(png.subarray(40, 50)))
  cleaner.push(Buffer.from(png.subarray(50)))
  expect(cleaner.spentMs).toBe(90)
  expect(() => cleaner.end()).toThrow(RefusedFile)
})
