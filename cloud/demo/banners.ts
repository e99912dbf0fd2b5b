import type { CloudContext } from '../platform/context.ts'
import type { Media } from '../platform/media/media.ts'
import type { Colour } from './png.ts'
import { storePicture } from './store-picture.ts'

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
export async function seedBanners(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  media: Media,
  hubId: number,
): Promise<void> {
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
