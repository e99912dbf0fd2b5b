import type { MediaFolder } from '../../protocol/contract/form.ts'
import type { Media } from '../platform/media/media.ts'
import { encodePng, type Colour } from './png.ts'

/** A picture that goes from one colour at the top left to another at the bottom right. Pixels. */
export interface ShadedPicture {
  width: number
  height: number
  from: Colour
  to: Colour
}

/** Draws a picture into the media store; its key. It goes again unless a transaction keeps it. */
export async function storePicture(
  media: Media,
  folder: MediaFolder,
  { width, height, from, to }: ShadedPicture,
): Promise<string> {
  /** In steps. */
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
