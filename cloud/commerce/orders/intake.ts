import type { CloudContext } from '../../platform/context.ts'
import { hubRows, stateOf } from '../../gateway/hub-state.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { statement } from '../../platform/store/statement.ts'
import { availableUnits } from '../catalogue/units.ts'
import { readHubLoad, readTakenBins, roomOf, type HubLoad, type HubRoom } from './bin-room.ts'

/** Why a hub takes no orders now; the values of `details.reason`. */
export type Refusal = 'hub_inactive' | 'orders_stopped' | 'hub_offline' | 'stream_stalled' | 'hub_not_ready'

export interface Intake extends HubRoom {
  /** Null: the hub takes orders. */
  refusal: Refusal | null
}

/** The columns of a hub that decide whether it sells, to whom and at which price. */
const sellingHubs = (q: Queries) =>
  hubRows(q).select([
    'hubs.owner_id',
    'hubs.disabled_bins',
    'hubs.timezone',
    'hubs.tax_millipercent',
    'hubs.external_payments',
  ])
const hubById = statement((q, { hubId }: { hubId: number }) => sellingHubs(q).where('hubs.id', '=', hubId))
const hubToLock = statement((q, { orderId }: { orderId: number }, locks) => {
  const hubId = q.selectFrom('orders').select('hub_id').where('id', '=', orderId)
  return locks.forUpdate(sellingHubs(q).where('hubs.id', '=', hubId), 'hubs')
})

export type SellingHub = Awaited<ReturnType<typeof hubById>>[number]

export async function readSellingHub(q: Queries, hubId: number): Promise<SellingHub | undefined> {
  const [hub] = await hubById(q, { hubId })
  return hub
}

/**
 * The hub of an order, locked, so that checkouts at a hub run one after another. Undefined if there is no such order.
 */
export async function lockHubOfOrder(tx: Tx, orderId: number): Promise<SellingHub | undefined> {
  const [hub] = await hubToLock(tx.q, { orderId })
  return hub
}

/** The capacity of a hub for a new order. Throws `hub_not_found`. */
export async function hubIntake(q: Queries, context: CloudContext, hubId: number): Promise<Intake> {
  const [hub, load] = await Promise.all([readHub(q, hubId), readHubLoad(q, { hubId })])
  return intakeOf(context, hub, load)
}

export const intakeOf = (context: CloudContext, hub: SellingHub, load: HubLoad): Intake => ({
  refusal: refusalOf(context, hub),
  ...roomOf(load, JSON.parse(hub.disabled_bins) as number[]),
})

/** Throws if the hub takes no orders at all: `hub_not_found`, `hub_not_accepting_orders`. */
export async function requireAccepting(q: Queries, context: CloudContext, hubId: number): Promise<void> {
  const refusal = refusalOf(context, await readHub(q, hubId))
  if (refusal !== null) throw new ApiError('hub_not_accepting_orders', undefined, { reason: refusal })
}

async function readHub(q: Queries, hubId: number): Promise<SellingHub> {
  const hub = await readSellingHub(q, hubId)
  if (!hub) throw new ApiError('hub_not_found')
  return hub
}

/** Why a hub takes no orders now; null if it takes them. */
function refusalOf({ runtime, settings }: CloudContext, hub: SellingHub): Refusal | null {
  const { online, isStalled, acceptingOrders } = stateOf(hub, runtime.clock.now(), settings.onlineWithinMs)
  if (hub.hub_status !== 'active') return 'hub_inactive'
  if (hub.accepting_orders === 0) return 'orders_stopped'
  if (!online) return 'hub_offline'
  if (isStalled) return 'stream_stalled'
  return acceptingOrders ? null : 'hub_not_ready'
}

/**
 * Why customers can buy nothing at a hub now, the first that applies; null if they can. The absence of alarms
 * does not imply that.
 */
export async function notSellingReason(
  q: Queries,
  context: CloudContext,
  hubId: number,
): Promise<Refusal | 'no_bin_available' | 'out_of_stock' | null> {
  const hub = await readHub(q, hubId)
  const refusal = refusalOf(context, hub)
  if (refusal !== null) return refusal
  if (await readTakenBins(q, hubId, JSON.parse(hub.disabled_bins) as number[])) return 'no_bin_available'
  const sellable = await q
    .selectFrom('products')
    .select('id')
    .where('hub_id', '=', hubId)
    .where('is_active', '=', 1)
    .where(availableUnits, '>', 0)
    .limit(1)
    .executeTakeFirst()
  return sellable ? null : 'out_of_stock'
}
