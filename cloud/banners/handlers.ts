import type { Selectable } from 'kysely'
import type { Banner, ownerBannerRoutes } from '../../protocol/contract/owner-banners.ts'
import type { CloudContext } from '../context.ts'
import { ApiError } from '../http/api-error.ts'
import type { Handlers } from '../http/handler.ts'
import type { Media } from '../media/media.ts'
import type { Tables } from '../store/schema.ts'

/** As many as a hub's screen could ever show. */
const MOST_LISTED = 500

/** O §4.7. */
export function bannerHandlers(
  { db, runtime }: Pick<CloudContext, 'db' | 'runtime'>,
  media: Media,
): Handlers<keyof typeof ownerBannerRoutes> {
  const view = ({ id, name, image_key, order_by }: Selectable<Tables['banners']>): Banner => ({
    id,
    name,
    image_url: media.addressOf(image_key),
    order_by,
  })

  return {
    async 'owner.banners.list'({ query: { hub_id } }) {
      const rows = await db.kysely
        .selectFrom('banners')
        .selectAll()
        .where('hub_id', '=', hub_id)
        .orderBy('order_by')
        .orderBy('id')
        .limit(MOST_LISTED)
        .execute()
      return rows.map(view)
    },

    async 'owner.banners.create'({ query: { hub_id }, form }) {
      const { name, order_by } = form.fields
      const { key } = form.files[0]!
      const row = await db.transact(async (tx) => {
        await media.keep(tx, [key])
        return tx.q
          .insertInto('banners')
          .values({ hub_id, name, order_by, image_key: key, created_at: runtime.clock.now() })
          .returningAll()
          .executeTakeFirstOrThrow()
      })
      return view(row)
    },

    async 'owner.banners.delete'({ params: { banner_id }, query: { hub_id } }) {
      await db.transact(async (tx) => {
        const row = await tx.q
          .deleteFrom('banners')
          .where('id', '=', banner_id)
          .where('hub_id', '=', hub_id)
          .returning('image_key')
          .executeTakeFirst()
        if (!row) throw new ApiError('banner_not_found')
        await media.remove(tx, row.image_key)
      })
      return { success: true, message: 'The banner has been removed.' }
    },
  }
}
