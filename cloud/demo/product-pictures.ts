import type { Media } from '../platform/media/media.ts'
import type { Tx } from '../platform/store/database.ts'
import { demoProducts, type DemoProduct } from './assortment.ts'
import type { Colour } from './png.ts'
import { storePicture } from './store-picture.ts'

/** Pixels. */
const SIDE = 96

/** What the demo's products look like: those of a shelf alike. */
export interface ProductPictures {
  /** What `image_url` of a product keeps. */
  imageOf(product: DemoProduct): string
  /** In the transaction that refers to the pictures. */
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

/** A colour of the wheel (degrees) whose strongest part has a brightness of 0…255. */
function colourOf(hue: number, brightness: number): Colour {
  const part = (angle: number): number => {
    const away = Math.abs(((hue - angle + 540) % 360) - 180)
    return Math.round(brightness * Math.min(1, Math.max(0.25, 2 - away / 60)))
  }
  return [part(0), part(120), part(240)]
}
