import { isActive } from '../../../protocol/model/order-status.ts'
import type { BinHealth } from '../../../protocol/mqtt/session.ts'
import type { CloudContext } from '../../platform/context.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries } from '../../platform/store/database.ts'
import { LAST_ACTIVE } from './order-rows.ts'

/** Whether and why not a hub takes an order now, as `details.reason` says it. */
export type Refusal = 'hub_inactive' | 'orders_stopped' | 'hub_offline' | 'hub_not_ready'

export interface Intake {
  /** Null: it takes orders. */
  refusal: Refusal | null
  taxBasisPoints: number
  ledgerEpoch: string | null
  /** Bins that may serve customers at all. */
  usableBins: number[]
  /** Those of them that nothing stands in and nobody has claimed. */
  freeBins: number[]
}

/** What a hub can do for a new order. Throws `hub_not_found`. */
export async function hubIntake(
  q: Queries,
  { runtime, settings }: CloudContext,
  hubId: number,
): Promise<Intake> {
  const hub = await q
    .selectFrom('hubs')
    .select(['hub_status', 'accepting_orders', 'disabled_bins', 'tax_basis_points'])
    .where('id', '=', hubId)
    .executeTakeFirst()
  if (!hub) throw new ApiError('hub_not_found')
  const state = await hubState(q, hubId, runtime.clock.now(), settings.onlineWithinMs)
  const disabled = JSON.parse(hub.disabled_bins) as number[]
  const usable = (state.health?.bins ?? []).filter(
    (bin) => isUsable(bin) && !disabled.includes(bin.bin_number),
  )
  const claimed = await claimedBins(q, hubId)
  return {
    refusal: refusalOf(hub, state),
    taxBasisPoints: hub.tax_basis_points,
    ledgerEpoch: state.ledgerEpoch,
    usableBins: usable.map(({ bin_number }) => bin_number),
    freeBins: usable
      .filter((bin) => isFree(bin) && !claimed.has(bin.bin_number))
      .map(({ bin_number }) => bin_number),
  }
}

/** Throws what stands in the way of any order at a hub. */
export function requireAccepting({ refusal }: Intake): void {
  if (refusal !== null) throw new ApiError('hub_not_accepting_orders', undefined, { reason: refusal })
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

const isUsable = (bin: BinHealth): boolean => bin.enabled && bin.status === 'healthy'
const isFree = (bin: BinHealth): boolean =>
  bin.order_id === null && bin.occupied !== true && bin.door === 'closed'

async function claimedBins(q: Queries, hubId: number): Promise<Set<number>> {
  const claims = await q
    .selectFrom('orders')
    .select(['reserved_bin', 'processing_status'])
    .where('hub_id', '=', hubId)
    .where('reserved_bin', 'is not', null)
    .where('processing_status', '<=', LAST_ACTIVE)
    .execute()
  return new Set(
    claims.filter((order) => isActive(order.processing_status)).map((order) => order.reserved_bin!),
  )
}
