import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import type { CloudContext } from '../../platform/context.ts'
import { type ControlServices, hardwareError, sendAudited } from '../controls/control.ts'
import { hubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { LAST_ACTIVE } from '../../commerce/orders/order-rows.ts'
import { doorsOf, readFridges } from '../../commerce/catalogue/layout.ts'

/** O §4.1: the main door and the fridge doors. */
export function doorHandlers(
  services: ControlServices,
): Handlers<'owner.hubs.door_status' | 'owner.hubs.request_door_open' | 'owner.hubs.fridge_map'> {
  const { context } = services
  const { db, runtime, settings } = context

  return {
    async 'owner.hubs.door_status'({ query }) {
      const q = db.kysely
      const { online, health } = await hubState(q, query.hub_id, runtime.clock.now(), settings.onlineWithinMs)
      const heard = new Map(health?.doors.map(({ door, status }) => [door, status]))
      const doors = new Set([...doorsOf(await readFridges(q, query.hub_id)), ...heard.keys()])
      return {
        door_status: [...doors].map((door) => ({
          door,
          status: (online ? heard.get(door) : undefined) ?? 'unknown',
        })),
        order_status: { has_pending_orders: await hasOrderInProgress(context, query.hub_id) },
      }
    },

    async 'owner.hubs.request_door_open'({ query, credential, requestName }) {
      const { hub_id: hubId } = query
      const { actor } = credential
      if (await hasOrderInProgress(context, hubId)) {
        await appendAudit(db.kysely, runtime, {
          actor,
          action: 'hubs.request_door_open',
          hubId,
          object: 'main-door',
          result: 'refused',
          detail: { reason: 'order_in_progress' },
        })
        throw new ApiError('order_in_progress')
      }
      const body = { name: 'open_main_door' } as const
      const outcome = await sendAudited(services, { hubId, body, actor, requestName })
      if (outcome.kind === 'executed')
        return {
          success: true,
          data: null,
          message: 'The main door is unlocked. It locks again automatically.',
        }
      // An order has started in between; the hub decides.
      if (outcome.kind === 'refused' && outcome.reason === 'interlock')
        throw new ApiError('order_in_progress')
      throw hardwareError(outcome)
    },

    async 'owner.hubs.fridge_map'({ query }) {
      const fridges = await readFridges(db.kysely, query.hub_id)
      return {
        data: Object.fromEntries(
          fridges.map(({ fridge, left, middle, right }) => [String(fridge), { left, middle, right }]),
        ),
      }
    },
  }
}

/** Whether the hub has an unfinished order. */
async function hasOrderInProgress({ db }: CloudContext, hubId: number): Promise<boolean> {
  const order = await db.kysely
    .selectFrom('orders')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('processing_status', '>=', OrderStatus.QUEUED)
    .where('processing_status', '<=', LAST_ACTIVE)
    .limit(1)
    .executeTakeFirst()
  return order !== undefined
}
