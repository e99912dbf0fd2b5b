import type { Selectable } from 'kysely'
import type { Banner, ownerBannerRoutes } from '../../../protocol/contract/owner-banners.ts'
import type { CloudContext } from '../../platform/context.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'

/** Maximum number of banners of a hub. */
const MOST = 100

/** O §4.7. */
export function bannerHandlers(
  { db, runtime }: CloudContext,
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
        .limit(MOST)
        .execute()
      return rows.map(view)
    },

    async 'owner.banners.create'({ query: { hub_id }, form }) {
      const { name, order_by } = form.fields
      const { key } = form.files[0]!
      const row = await db.transact(async (tx) => {
        await requireRoom(tx, hub_id)
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

/** Locks the hub, so that concurrent requests cannot exceed the maximum. */
async function requireRoom(tx: Tx, hubId: number): Promise<void> {
  await tx.forUpdate(tx.q.selectFrom('hubs').select('id').where('id', '=', hubId)).executeTakeFirst()
  const { count } = await tx.q
    .selectFrom('banners')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('hub_id', '=', hubId)
    .executeTakeFirstOrThrow()
  if (count < MOST) return
  const msg = `A hub has at most ${MOST} banners: remove one first.`
  throw new ApiError('validation_error', msg, undefined, [
    { loc: ['query', 'hub_id'], msg, type: 'too_long', ctx: { max_length: MOST } },
  ])
}
