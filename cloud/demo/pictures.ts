import { deflateSync } from 'node:zlib'
import type { MediaFolder } from '../../protocol/contract/form.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Media } from '../platform/media/media.ts'
import type { Tx } from '../platform/store/database.ts'
import { type DemoProduct, demoProducts } from './assortment.ts'

/** Pixels. */
const SIDE = 96

/** Pictures of the demo's products: one per subcategory. */
export interface ProductPictures {
  /** The value of a product's `image_url`. */
  imageOf(product: DemoProduct): string
  /** Must run in the transaction that refers to the pictures. */
  keep(tx: Tx): Promise<void>
}

export const noPictures: ProductPictures = { imageOf: () => '', keep: () => Promise.resolve() }

/** Draws one picture for each subcategory into the media store. */
export async function drawProducts(media: Media): Promise<ProductPictures> {
  const shelves = [...new Set(demoProducts.map(({ subcategory }) => subcategory))]
  const keys = new Map<string, string>()
  for (const [index, shelf] of shelves.entries()) {
    const hue = (360 * index) / shelves.length
    const picture = { width: SIDE, height: SIDE, from: colourOf(hue, 235), to: colourOf(hue, 130) }
    keys.set(shelf, await storePicture(media, 'products', picture))
  }
  return {
    imageOf: ({ subcategory }) => keys.get(subcategory)!,
    keep: (tx) => media.keep(tx, [...keys.values()]),
  }
}

/** A colour of the wheel (degrees); its strongest part has a brightness of 0…255. */
function colourOf(hue: number, brightness: number): Colour {
  const part = (angle: number): number => {
    const away = Math.abs(((hue - angle + 540) % 360) - 180)
    return Math.round(brightness * Math.min(1, Math.max(0.25, 2 - away / 60)))
  }
  return [part(0), part(120), part(240)]
}

const WIDTH = 320
const HEIGHT = 120

interface DemoBanner {
  name: string
  from: Colour
  to: Colour
}

const demoBanners: readonly DemoBanner[] = [
  { name: 'Breakfast before the train', from: [250, 170, 60], to: [200, 60, 40] },
  { name: 'Cold drinks, all day', from: [60, 180, 230], to: [20, 60, 140] },
  { name: 'Two for one on Fridays', from: [120, 200, 90], to: [20, 110, 70] },
]

/** Gives a hub its banners, with pictures in the media store. */
export async function seedBanners({ db, runtime }: CloudContext, media: Media, hubId: number): Promise<void> {
  for (const [index, { name, from, to }] of demoBanners.entries()) {
    const key = await storePicture(media, 'banners', { width: WIDTH, height: HEIGHT, from, to })
    await db.transact(async (tx) => {
      await media.keep(tx, [key])
      await tx.q
        .insertInto('banners')
        .values({ hub_id: hubId, name, order_by: index + 1, image_key: key, created_at: runtime.clock.now() })
        .execute()
    })
  }
}

/** A picture that goes from one colour at the top left to another at the bottom right. Pixels. */
interface ShadedPicture {
  width: number
  height: number
  from: Colour
  to: Colour
}

/**
 * Draws a picture into the media store and returns its key. It is deleted again unless a transaction keeps
 * it.
 */
async function storePicture(
  media: Media,
  folder: MediaFolder,
  { width, height, from, to }: ShadedPicture,
): Promise<string> {
  /** The gradient has discrete steps. */
  const colourAt = (x: number, y: number): Colour => {
    const share = Math.round(8 * (x / width + y / height)) / 16
    const mixed = from.map((value, index) => Math.round(value + (to[index]! - value) * share))
    return [mixed[0]!, mixed[1]!, mixed[2]!]
  }
  const { key } = await media.store({
    folder,
    number: undefined,
    type: { kind: 'image', mimeType: 'image/png', extension: 'png' },
    content: once(encodePng({ width, height, colourAt })),
  })
  return key
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes)
}

/** 0…255 each. */
type Colour = readonly [red: number, green: number, blue: number]

interface Picture {
  width: number
  height: number
  colourAt: (x: number, y: number) => Colour
}

/** A picture as a PNG file (PNG specification, third edition: §5 chunks, §11.2 critical ones). */
export function encodePng({ width, height, colourAt }: Picture): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  // Eight bits a sample, red, green and blue.
  header.set([8, 2], 8)
  const rows = Array.from({ length: height }, (_row, y) =>
    // Each row begins with its filter: none.
    [0, ...Array.from({ length: width }, (_column, x) => colourAt(x, y)).flat()],
  )
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.from(rows.flat()))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length, 0)
  frame.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
}

/** The CRC of ISO 3309, as PNG has it (annex D). */
function crc32(bytes: Buffer): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return (crc ^ 0xffffffff) >>> 0
}
