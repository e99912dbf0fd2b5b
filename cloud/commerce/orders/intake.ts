import type { CloudContext } from '../../platform/context.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'
import { readBinRoom, type BinRoom } from './bin-room.ts'

/** Whether and why not a hub takes an order now, as `details.reason` says it. */
export type Refusal = 'hub_inactive' | 'orders_stopped' | 'hub_offline' | 'hub_not_ready'

export interface Intake {
  /** Null: it takes orders. */
  refusal: Refusal | null
  /** As the hub's ledger last said. */
  bins: BinRoom
}

/** What a hub can do for a new order. Throws `hub_not_found`. */
export async function hubIntake(q: Queries, context: CloudContext, hubId: number): Promise<Intake> {
  const { refusal, disabledBins } = await readHub(q, context, hubId)
  return { refusal, bins: await readBinRoom(q, hubId, disabledBins) }
}

/** Throws what stands in the way of any order at a hub: `hub_not_found`, `hub_not_accepting_orders`. */
export async function requireAccepting(q: Queries, context: CloudContext, hubId: number): Promise<void> {
  const { refusal } = await readHub(q, context, hubId)
  if (refusal !== null) throw new ApiError('hub_not_accepting_orders', undefined, { reason: refusal })
}

async function readHub(q: Queries, { runtime, settings }: CloudContext, hubId: number) {
  const hub = await q
    .selectFrom('hubs')
    .select(['hub_status', 'accepting_orders', 'disabled_bins'])
    .where('id', '=', hubId)
    .executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
  const state = await hubState(q, hubId, runtime.clock.now(), settings.onlineWithinMs)
  return { refusal: refusalOf(hub, state), disabledBins: JSON.parse(hub.disabled_bins) as number[] }
}

function refusalOf(
  hub: { hub_status: string; accepting_orders: 0 | 1 },
  { online, acceptingOrders }: HubState,
): Refusal | null {
  if (hub.hub_status !== 'active') return 'hub_inactive'
  if (hub.accepting_orders === 0) return 'orders_stopped'
  if (!online) return 'hub_offline'
  return acceptingOrders ? null : 'hub_not_ready'
}
