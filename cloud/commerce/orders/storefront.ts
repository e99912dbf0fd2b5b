import { HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import type { Storefront } from '../../../protocol/contract/consumer-products.ts'
import { shownHubStatus } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { WHOLE } from '../catalogue/blocked.ts'
import { notSellingReason } from './intake.ts'

/** A hub as customers see it. */
export const storefrontHandlers = (
  context: CloudContext,
  cards: Storefront['cards'],
): Handlers<'consumer.hubs.get'> => ({
  async 'consumer.hubs.get'({ params: { hub_id: hubId } }) {
    const q = context.db.kysely
    const hub = await q
      .selectFrom('hubs')
      .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
      .selectAll('hubs')
      .select('hub_sessions.last_heard_at')
      .where('hubs.id', '=', hubId)
      .executeTakeFirst()
    if (!hub) throw new ApiError('hub_not_found')
    const closed = await q
      .selectFrom('blocked_places')
      .select(['cabinet', 'reason'])
      .where('hub_id', '=', hubId)
      .where('shelf', '=', WHOLE.shelf)
      .orderBy('cabinet')
      .execute()
    const byCabinet = new Map(closed.map(({ cabinet, reason }) => [cabinet, reason]))
    return {
      ...HubSummary.parse({ ...hub, hub_status: shownHubStatus(hub) }),
      timezone: hub.timezone,
      currency: context.settings.currency,
      closed_reason: await notSellingReason(q, context, hubId),
      closed_cabinets: [...byCabinet].map(([cabinet, reason]) => ({
        cabinet,
        reason: reason as Storefront['closed_cabinets'][number]['reason'],
      })),
      cards,
    }
  },
})
