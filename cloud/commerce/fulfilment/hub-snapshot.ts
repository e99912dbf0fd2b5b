import { z } from 'zod'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { HubConfig, QueuedOrder, type CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { readDesired } from '../../gateway/desired-state.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { namedProducts } from '../catalogue/layout.ts'
import { pendingCounts } from '../catalogue/shelf-stock.ts'
import { LAST_ACTIVE, parseBins } from '../orders/order-rows.ts'

type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/**
 * Operations per cabinet. A controller remembers 256; this is more, because operations that were booked late
 * are among them. A slow cabinet may need months for the sales that another makes in a day, and its
 * controller remembers those months.
 */
const KNOWN_OPERATIONS = 400

const Numbers = z.array(z.int())

/**
 * Reads the complete state for a hub within the transaction: the first entry of an epoch of its outbox (SPEC
 * §4).
 */
export async function hubSnapshot(tx: Tx, context: CloudContext, hubId: number): Promise<Snapshot> {
  const facings = await tx.q
    .selectFrom('facings')
    .selectAll()
    .where('hub_id', '=', hubId)
    .orderBy('cabinet')
    .orderBy('shelf')
    .orderBy('row')
    .execute()
  const placed = facings.map(({ product_id, is_primary, quantity, cabinet, shelf, row }) => ({
    product_id,
    location: { cabinet, shelf, row },
    primary: is_primary === 1,
    quantity,
  }))
  return {
    kind: 'snapshot',
    config: await readHubConfig(tx, context, hubId),
    desired: await readDesired(tx.q, hubId),
    facings: placed.map(({ product_id, location, primary }) => ({ product_id, location, primary })),
    products: await namedProducts(tx.q, hubId),
    stock: placed.map(({ product_id, location, quantity }) => ({ product_id, location, quantity })),
    known_operations: await knownOperations(tx, hubId),
    counts: await pendingCounts(tx, hubId),
    orders: await ordersAt(tx, hubId),
  }
}

/** The operators' settings for a hub, as its `config` entries carry them. */
export async function readHubConfig(tx: Tx, { settings }: CloudContext, hubId: number): Promise<HubConfig> {
  const hub = await tx.q
    .selectFrom('hubs')
    .select(['hub_status', 'accepting_orders', 'disabled_bins', 'disabled_fridges', 'confirmed_fridges'])
    .where('id', '=', hubId)
    .executeTakeFirstOrThrow()
  return {
    accepting_orders: hub.hub_status === 'active' && hub.accepting_orders === 1,
    disabled_bins: Numbers.parse(JSON.parse(hub.disabled_bins)),
    disabled_fridges: Numbers.parse(JSON.parse(hub.disabled_fridges)),
    confirmed_fridges: readConfirmed(hub),
    prepare_timeout_ms: settings.prepareTimeoutMs,
    unclaimed_timeout_ms: settings.unclaimedTimeoutMs,
    people: await tx.q
      .selectFrom('hub_people')
      .select(['name', 'pin_digest'])
      .where('hub_id', '=', hubId)
      .orderBy('name')
      .execute(),
  }
}

/** The times when people last confirmed the fridges of a hub. */
export const readConfirmed = (hub: { confirmed_fridges: string | null }): HubConfig['confirmed_fridges'] =>
  HubConfig.shape.confirmed_fridges.parse(JSON.parse(hub.confirmed_fridges ?? '[]'))

/**
 * Returns the operations that a controller may still remember and that the mirrored stock already includes,
 * newest last (their ids sort by time).
 *
 * - Operations with a booked drop.
 * - Unconfirmed operations that a count, a sensor or a person resolved, except those that a sensor or a
 *   person reported as dispensed. Their drop may not be booked: the hub may have lost the entry that reports
 *   it.
 */
async function knownOperations(tx: Tx, hubId: number): Promise<string[]> {
  const drops = tx.q
    .selectFrom('stock_ledger')
    .select((eb) => [
      'cause_id as id',
      eb.fn
        .agg<number>('row_number')
        .over((over) => over.partitionBy('cabinet').orderBy('stock_ledger.id', 'desc'))
        .as('age'),
    ])
    .where('hub_id', '=', hubId)
    .where('kind', '=', 'dropped')
  const settlings = tx.q
    .selectFrom('unknown_operations')
    .select((eb) => [
      'operation_id as id',
      eb.fn
        .agg<number>('row_number')
        .over((over) => over.partitionBy('device').orderBy('operation_id', 'desc'))
        .as('age'),
    ])
    .where('hub_id', '=', hubId)
    .where('settled_at', 'is not', null)
    .where((eb) =>
      eb.or([eb('happened', 'is', null), eb('happened', '=', 0), eb('settled_by', '=', 'count')]),
    )
  const newest = await tx.q
    .selectFrom(drops.unionAll(settlings).as('known'))
    .select('id')
    .where('age', '<=', KNOWN_OPERATIONS)
    .execute()
  return [...new Set(newest.map(({ id }) => id))].toSorted()
}

/** The orders that concern a hub, with the drops that are known. */
async function ordersAt(tx: Tx, hubId: number): Promise<Snapshot['orders']> {
  const orders = await tx.q
    .selectFrom('orders')
    .select(['id', 'processing_status', 'queued_order'])
    .where('hub_id', '=', hubId)
    .where('processing_status', '>=', OrderStatus.QUEUED)
    .where('processing_status', '<=', LAST_ACTIVE)
    .orderBy('queued_at')
    .orderBy('id')
    .execute()
  const snapshot: Snapshot['orders'] = []
  for (const order of orders) {
    const items = await tx.q
      .selectFrom('order_items')
      .select(['id', 'qty', 'refunded_quantity', 'qty_dropped', 'bins'])
      .where('order_id', '=', order.id)
      .orderBy('id')
      .execute()
    snapshot.push({
      order: QueuedOrder.parse(JSON.parse(order.queued_order!)),
      status: order.processing_status,
      lines: items.map((item) => ({
        line_id: item.id,
        wanted: item.qty - item.refunded_quantity,
        dropped: item.qty_dropped,
        bins: parseBins(item.bins),
      })),
    })
  }
  return snapshot
}
