import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HEAD_BYTES, mediaTypeOf, mediaTypes } from '../../../../cloud/platform/media/media-type.ts'
import * as samples from '../../support/media-samples.ts'

const accepted = {
  png: [samples.png, 'image/png'],
  jpeg: [samples.jpeg, 'image/jpeg'],
  gif: [samples.gif, 'image/gif'],
  webp: [samples.webp, 'image/webp'],
  mp4: [samples.mp4, 'video/mp4'],
  mov: [samples.mov, 'video/quicktime'],
  webm: [samples.webm, 'video/webm'],
} as const

describe('media types', () => {
  test.each(Object.entries(accepted))(
    'the type of a file is recognised by its content: %s',
    (_name, [content, mimeType]) => {
      expect(mediaTypeOf(content)?.mimeType).toBe(mimeType)
      expect(mediaTypeOf(samples.grown(content, HEAD_BYTES))?.mimeType).toBe(mimeType)
    },
  )

  test('every accepted type has its sample', () => {
    expect(mediaTypes.map(({ mimeType }) => mimeType).sort()).toEqual(
      Object.values(accepted)
        .map(([, mimeType]) => mimeType)
        .sort(),
    )
  })

  const refused = {
    nothing: Buffer.alloc(0),
    text: Buffer.from('hello'),
    html: samples.html,
    svg: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
    pdf: Buffer.from('%PDF-1.7'),
    heic: samples.heic,
    avif: samples.avif,
    'audio in an MP4 container': samples.m4a,
    matroska: samples.matroska,
    wav: Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1'),
    'a PNG signature and no header': samples.png.subarray(0, 8),
    'the name of a type': Buffer.from('image/png'),
  }
  test.each(Object.entries(refused))('an unsupported file is not recognised: %s', (_name, content) => {
    expect(mediaTypeOf(content)).toBeUndefined()
  })
})

test('a truncated file has its type or none, and random bytes never throw', () => {
  const files = Object.values(accepted)
  fc.assert(
    fc.property(fc.nat(files.length - 1), fc.nat(80), (index, length) => {
      const [content, mimeType] = files[index]!
      expect([undefined, mimeType]).toContain(mediaTypeOf(content.subarray(0, length))?.mimeType)
    }),
  )
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 80 }),
      fc.constantFrom(...Object.values(samples)),
      (noise, sample) => {
        mediaTypeOf(noise)
        if (!Buffer.isBuffer(sample)) return
        // The start stays intact, so that the parser continues into the noise.
        mediaTypeOf(Buffer.concat([sample.subarray(0, 5), noise]))
      },
    ),
  )
})

test('one wrong byte in a signature gives another type or none', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(samples.png, samples.gif, samples.webm),
      fc.nat(3),
      fc.integer({ min: 1, max: 255 }),
      (content, at, change) => {
        const changed = Buffer.from(content)
        changed[at]! ^= change
        expect(mediaTypeOf(changed)).toBeUndefined()
      },
    ),
  )
})
