import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readImages } from '../../../edge/hardware/firmware-images.ts'
import { MAX_IMAGE_BYTES } from '../../../protocol/serial/frames.ts'
import { makeImage, sumOf } from '../../../simulator/firmware/image.ts'
import { silentLog } from '../../../protocol/model/log.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-images-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('the hub takes only the newest image of each kind from its folders', () => {
  const own = join(folder, 'own')
  mkdirSync(own)
  const newest = makeImage({ build: 12 })
  writeFileSync(join(folder, 'a.img'), makeImage({ build: 3 }))
  writeFileSync(join(folder, 'b.img'), makeImage({ kind: 'other', build: 1 }))
  writeFileSync(join(own, 'c.img'), newest)
  writeFileSync(join(own, 'notes.txt'), makeImage({ build: 99 }))
  const images = readImages([folder, own, join(folder, 'absent')], silentLog)
  expect(images.map(({ kind, build }) => [kind, build])).toEqual([
    ['larder-sim', 12],
    ['other', 1],
  ])
  expect(images[0]).toMatchObject({ size: newest.length, sum: sumOf(newest) })
  expect(images[0]!.read()).toEqual(newest)
})

test('the hub reports a file that is no image or is too large, and reads no file that has changed', () => {
  writeFileSync(join(folder, 'a.img'), 'larder-firmware kind=a build=1\n')
  writeFileSync(join(folder, 'b.img'), Buffer.alloc(MAX_IMAGE_BYTES + 1))
  writeFileSync(join(folder, 'c.img'), makeImage({ build: 2 }))
  const files: object[] = []
  const log = { ...silentLog, warn: (file: object) => void files.push(file) }
  const [image, ...others] = readImages([folder], log)
  expect([others, files.length]).toEqual([[], 2])
  writeFileSync(join(folder, 'c.img'), makeImage({ build: 2 }, 'another program'))
  expect(image!.read()).toBeUndefined()
  rmSync(join(folder, 'c.img'))
  expect(image!.read()).toBeUndefined()
})
