import { expect, test } from 'vitest'
import { imageSizeOf } from '../../../../cloud/platform/media/image-size.ts'
import { mediaTypeOf } from '../../../../cloud/platform/media/media-type.ts'
import { gif, jpeg, png, webp } from '../../support/media-samples.ts'

const sizeOf = (bytes: Buffer) => imageSizeOf(mediaTypeOf(bytes)!, bytes)

const chunked = (name: string, ...content: number[]): Buffer => {
  const body = Buffer.alloc(18)
  body.set(content)
  return Buffer.concat([Buffer.from(`RIFF\0\0\0\0WEBP${name}\0\0\0\0`, 'latin1'), body])
}

test('every kind of image says its size', () => {
  expect([png, gif, jpeg, webp].map(sizeOf)).toEqual([
    { width: 8, height: 4 },
    { width: 1, height: 1 },
    { width: 16, height: 8 },
    { width: 1, height: 1 },
  ])
  expect(sizeOf(chunked('VP8 ', 0, 0, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xf0, 0))).toEqual({
    width: 320,
    height: 240,
  })
  expect(sizeOf(chunked('VP8X', 0, 0, 0, 0, 0xff, 0xff, 0, 0x0f, 0, 0))).toEqual({
    width: 65_536,
    height: 16,
  })
})

test('in a JPEG it stands behind whatever a camera has written', () => {
  const exif = Buffer.concat([Buffer.from([0xff, 0xe1, 0xff, 0xff]), Buffer.alloc(65_533, 7)])
  const photo = Buffer.concat([jpeg.subarray(0, 2), exif, exif, jpeg.subarray(2)])
  expect(sizeOf(photo)).toEqual({ width: 16, height: 8 })
  expect(sizeOf(photo.subarray(0, 70_000))).toBeUndefined()
  expect(sizeOf(Buffer.concat([jpeg.subarray(0, 2), Buffer.alloc(100, 0xff)]))).toBeUndefined()
})
