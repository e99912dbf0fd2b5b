import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32, inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { encodePng, seedBanners } from '../../../cloud/demo/pictures.ts'
import { folderStore } from '../../../cloud/platform/media/folder-store.ts'
import { mediaTypeOf } from '../../../cloud/platform/media/media-type.ts'
import { openCloud } from '../../world/cloud.ts'
import { onEachDatabase } from '../../world/database.ts'
import { emptyFolder, filesIn, testMedia } from '../support/media.ts'

/** The chunks of a PNG with valid checksums. */
function chunksOf(png: Buffer): Map<string, Buffer> {
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at)
    const named = png.subarray(at + 4, at + 8 + length)
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(named))
    chunks.set(named.toString('latin1', 0, 4), named.subarray(4))
    at += 12 + length
  }
  return chunks
}

test('a demo picture is a PNG with its given colours', () => {
  const png = encodePng({ width: 3, height: 2, colourAt: (x, y) => [x, y, 200] })
  const chunks = chunksOf(png)
  expect([...chunks.keys()]).toEqual(['IHDR', 'IDAT', 'IEND'])
  expect([...chunks.get('IHDR')!]).toEqual([0, 0, 0, 3, 0, 0, 0, 2, 8, 2, 0, 0, 0])
  const rows = [
    [0, 0, 0, 200, 1, 0, 200, 2, 0, 200],
    [0, 0, 1, 200, 1, 1, 200, 2, 1, 200],
  ]
  expect([...inflateSync(chunks.get('IDAT')!)]).toEqual(rows.flat())
})

onEachDatabase('the demo’s banners', (open) => {
  test('the demo’s banners belong to their hub, in order, with stored pictures', async () => {
    const { context } = await openCloud({ db: await open() })
    const folder = emptyFolder()
    await seedBanners(context, testMedia(context, folderStore(folder)), 1)
    const q = context.db.kysely
    const banners = await q.selectFrom('banners').selectAll().orderBy('order_by').execute()
    expect(banners.map(({ hub_id, order_by }) => [hub_id, order_by])).toEqual([
      [1, 1],
      [1, 2],
      [1, 3],
    ])
    expect(filesIn(folder)).toEqual(banners.map(({ image_key }) => image_key).sort())
    for (const { image_key } of banners) {
      const bytes = readFileSync(join(folder, image_key))
      expect(mediaTypeOf(bytes)?.mimeType).toBe('image/png')
      const pixels = inflateSync(chunksOf(bytes).get('IDAT')!)
      expect(pixels.length).toBe(120 * (1 + 3 * 320))
      expect(new Set(pixels).size).toBeGreaterThan(10)
    }
    const states = await q.selectFrom('media').select('state').distinct().execute()
    expect(states).toEqual([{ state: 'kept' }])
  })
})
