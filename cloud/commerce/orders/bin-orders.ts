import { sql } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { Queries } from '../../platform/store/database.ts'
import { LAST_ACTIVE } from './order-rows.ts'

/** The orders of a bin, by number. */
export interface BinOrders {
  /** The order with goods in the bin, on the way to it, or left in it. */
  order_id: number | null
  /** The order with an integrator's claim that reserves the bin. */
  reserved_for_order: number | null
  /** Whether an object is in the bin; null if the hub does not know. */
  occupied: boolean | null
}

export const noBinOrders: BinOrders = { order_id: null, reserved_for_order: null, occupied: null }

/** Bin numbers with their orders. */
export type OrdersByBin = ReadonlyMap<number, BinOrders>

/** The statuses in which a claimed bin is reserved: until the hub reports the order READY. */
export const RESERVING = [OrderStatus.PENDING_PAYMENT, OrderStatus.QUEUED, OrderStatus.PREPARING] as const

const occupancy = { held: true, left_behind: true, free: false, open: null, faulty: null, offline: null }

/** The orders of the bins of several hubs, from the hubs' ledgers and from claims. A bin without orders is absent. */
export async function readBinOrders(
  q: Queries,
  hubIds: readonly number[],
): Promise<Map<number, Map<number, BinOrders>>> {
  const found = new Map(hubIds.map((hubId) => [hubId, new Map<number, BinOrders>()]))
  if (hubIds.length === 0) return found
  const bins = await q
    .selectFrom('hub_bins as b')
    .leftJoin('orders as o', (join) =>
      join.onRef('o.uuid', '=', 'b.order_uuid').onRef('o.hub_id', '=', 'b.hub_id'),
    )
    .select(['b.hub_id', 'b.bin', 'b.state', 'o.id as order_id'])
    .where('b.hub_id', 'in', hubIds)
    .execute()
  for (const { hub_id, bin, state, order_id } of bins)
    found.get(hub_id)!.set(bin, { order_id, reserved_for_order: null, occupied: occupancy[state] })
  const claims = await q
    .selectFrom('orders')
    .select(['id', 'hub_id', 'reserved_bin'])
    .where('hub_id', 'in', hubIds)
    .where('reserved_bin', 'is not', null)
    .where('processing_status', '<=', LAST_ACTIVE)
    .where(
      'processing_status',
      'in',
      RESERVING.map((status) => sql.lit(status)),
    )
    .execute()
  for (const { id, hub_id, reserved_bin } of claims) {
    const ofHub = found.get(hub_id)!
    ofHub.set(reserved_bin!, { ...(ofHub.get(reserved_bin!) ?? noBinOrders), reserved_for_order: id })
  }
  return found
}
