import { sql } from 'kysely'
import { isActive, OrderStatus } from '../../../protocol/model/order-status.ts'
import type { BinObstacle, TakenBin } from '../../../protocol/model/taken-bins.ts'
import type { State } from '../../../protocol/mqtt/hub-entries.ts'
import type { Queries } from '../../platform/store/database.ts'
import type { Flag } from '../../platform/store/table.ts'
import { statement } from '../../platform/store/statement.ts'
import { LAST_ACTIVE, parseBins } from './order-rows.ts'

/**
 * Which bins of a hub a further order can count on. A bin that is empty is one, and so is a bin that comes free without
 * anybody having to come for what is in it. Each paid order without a bin takes as many of them as its units need, and so
 * does an order while the processor is being asked for its money. An order that waits for its customer or a bank takes none:
 * otherwise customers who do not pay could keep all others from buying. An integrator's claim takes the bin that it reserves.
 * Checkout asks this before it takes money, the queue for how long an order waits.
 */
export interface BinRoom {
  /** How many units fit into each bin that serves customers at all, the smallest first. */
  capacities: readonly number[]
  /** How many of them are empty now, and reserved for nobody. */
  empty: number
  /** Numbers of the empty ones that an integrator can claim. */
  claimable: readonly number[]
  /** Empty bins and those that come free by themselves, less what the waiting orders need. May be below 0. */
  free: number
}

/** A bin, as its hub's ledger last said. */
export type BinAtHub = Pick<
  Extract<State, { of: 'bin' }>,
  'bin' | 'capacity' | 'state' | 'order_id' | 'fault'
>

/** An order of a hub that is paid or being paid and has not ended. */
export interface OrderAtHub {
  id: number
  /** As hubs know it. */
  uuid: string
  processing_status: OrderStatus
  reserved_bin: number | null
  /** Whether the processor is being asked for its money, and has not answered. */
  is_asked: Flag
  /** Who holds its stock while it is unpaid (`unpaid.ts`). */
  payer_network: string | null
  /** As its hub reported them. */
  bins: readonly number[]
  units: number
}

/** Whether a bin that holds an order comes free without anybody coming for it, by where the order stands. */
const comesFree: Record<OrderStatus, boolean> = {
  [OrderStatus.NEW]: false,
  [OrderStatus.PENDING_PAYMENT]: false,
  // The hub has begun it, and its ledger has yet to say so.
  [OrderStatus.QUEUED]: true,
  [OrderStatus.PREPARING]: true,
  [OrderStatus.READY]: false,
  [OrderStatus.COLLECTING]: true,
  // Emptied and closed: the lift goes down.
  [OrderStatus.COMPLETED]: true,
  // What is in it was left behind.
  [OrderStatus.CANCELLED]: false,
  [OrderStatus.TIMED_OUT]: false,
  [OrderStatus.FAILED]: false,
  [OrderStatus.EXPIRED]: false,
}

/** The bins of a hub, if none of them is free or comes free by itself: the hub can sell nothing. Null if one does. */
export function takenBins(
  bins: readonly BinAtHub[],
  disabled: readonly number[],
  orders: readonly OrderAtHub[],
): TakenBin[] | null {
  const taken: TakenBin[] = []
  for (const one of bins) {
    const holder = holderOf(one, orders)
    const reason = obstacleOf(one, disabled, holder)
    if (reason === null) return null
    taken.push({ bin: one.bin, reason, orderId: holder?.id ?? null })
  }
  return taken.length > 0 ? taken : null
}

function obstacleOf(
  { bin, state, fault }: BinAtHub,
  disabled: readonly number[],
  holder: OrderAtHub | undefined,
): BinObstacle | null {
  if (disabled.includes(bin)) return 'disabled'
  if (state === 'offline') return 'offline'
  if (fault !== null || state === 'faulty') return 'fault'
  if (state === 'left_behind') return 'left_behind'
  if (holder) {
    if (comesFree[holder.processing_status]) return null
    return holder.processing_status === OrderStatus.READY ? 'ready' : 'left_behind'
  }
  if (state === 'free') return null
  return state === 'open' ? 'open' : 'left_behind'
}

/** The rule itself. `orders`: those of the hub that are active, carts aside, and those that its bins hold. */
export function binRoom(
  bins: readonly BinAtHub[],
  disabled: readonly number[],
  orders: readonly OrderAtHub[],
): BinRoom {
  const usable = bins.filter(
    ({ bin, state, fault }) => state !== 'offline' && fault === null && !disabled.includes(bin),
  )
  const holders = new Map(bins.map((one) => [one.bin, holderOf(one, orders)]))
  const held = new Set([...holders.values()].map((order) => order?.id))
  const waiting = orders.filter((order) => isWaiting(order) && !held.has(order.id))
  const reserved = new Set(waiting.flatMap(({ reserved_bin }) => reserved_bin ?? []))
  const open = usable.filter(({ bin }) => !reserved.has(bin))
  const empty = open.filter(({ bin, state }) => state === 'free' && !holders.get(bin))
  const coming = open.filter(({ bin, state }) => {
    const holder = holders.get(bin)
    return holder && state !== 'left_behind' && comesFree[holder.processing_status]
  })
  const capacities = usable.map(({ capacity }) => capacity).toSorted((a, b) => a - b)
  const needed = waiting.reduce((sum, order) => sum + furtherBins(capacities, order), 0)
  // The hub may have put a claimed order elsewhere: its bin is claimed once at a time all the same.
  const claims = new Set(orders.filter(isActiveOrder).map(({ reserved_bin }) => reserved_bin))
  return {
    capacities,
    empty: empty.length,
    claimable: empty.map(({ bin }) => bin).filter((number) => !claims.has(number)),
    free: empty.length + coming.length - needed,
  }
}

/** The order that a bin belongs to: as the hub says of the bin, or, in what came before that, of the order. */
function holderOf({ bin, order_id }: BinAtHub, orders: readonly OrderAtHub[]): OrderAtHub | undefined {
  if (order_id !== null) return orders.find(({ uuid }) => uuid === order_id)
  return orders.find(({ processing_status: status, bins }) => isInBins(status) && bins.includes(bin))
}

const isActiveOrder = ({ processing_status }: OrderAtHub): boolean => isActive(processing_status)

const isWaiting = ({ processing_status: status, reserved_bin, is_asked }: OrderAtHub): boolean =>
  status === OrderStatus.QUEUED ||
  (status === OrderStatus.PENDING_PAYMENT && (reserved_bin !== null || is_asked === 1))

const isInBins = (status: OrderStatus): boolean =>
  status === OrderStatus.PREPARING || status === OrderStatus.READY || status === OrderStatus.COLLECTING

/** How many bins an order of so many units takes: all of them, if it does not fit even so. */
export function binsFor(capacities: readonly number[], units: number): number {
  let left = units
  let count = 0
  for (const capacity of capacities) {
    if (left <= 0) break
    left -= capacity
    count += 1
  }
  return Math.max(1, count)
}

/** Bins that an order needs beside the one that is reserved for it. */
export const furtherBins = (
  capacities: readonly number[],
  { units, reserved_bin }: Pick<OrderAtHub, 'units' | 'reserved_bin'>,
): number => binsFor(capacities, units) - (reserved_bin === null ? 0 : 1)

/**
 * Whether a cart of so many units finds bins. A cart that does not fit into all bins of the hub finds none. An integrator's claim needs a bin that is empty now, and leaves another bin
 * free: claims cost nothing, so they never keep the other customers of a hub from ordering.
 */
export const isBinFree = (room: BinRoom, units: number, isClaim: boolean): boolean =>
  units <= room.capacities.reduce((sum, capacity) => sum + capacity, 0) &&
  binsFor(room.capacities, units) + (isClaim ? 1 : 0) <= room.free &&
  (!isClaim || room.claimable.length > 0)

/** What a hub's orders leave to a further one. */
export interface HubRoom {
  bins: BinRoom
  /** Units that unpaid orders reserve, by the network from which they are being paid. */
  unpaidUnits: ReadonlyMap<string, number>
}

/** The room at a hub, from what it last said of its bins and from its orders. */
export async function readRoom(q: Queries, hubId: number, disabled: readonly number[]): Promise<HubRoom> {
  const { bins, orders } = await readBinsWithOrders(q, hubId)
  return { bins: binRoom(bins, disabled, orders), unpaidUnits: unpaidUnits(orders) }
}

function unpaidUnits(orders: readonly OrderAtHub[]): Map<string, number> {
  const units = new Map<string, number>()
  for (const { processing_status: status, payer_network: network, units: more } of orders)
    if (status === OrderStatus.PENDING_PAYMENT && network !== null)
      units.set(network, (units.get(network) ?? 0) + more)
  return units
}

/** `takenBins` of a hub. */
export async function readTakenBins(
  q: Queries,
  hubId: number,
  disabled: readonly number[],
): Promise<TakenBin[] | null> {
  const { bins, orders } = await readBinsWithOrders(q, hubId)
  return takenBins(bins, disabled, orders)
}

async function readBinsWithOrders(
  q: Queries,
  hubId: number,
): Promise<{ bins: BinAtHub[]; orders: OrderAtHub[] }> {
  const [bins, active] = await Promise.all([binsOfHub(q, { hubId }), activeAtHub(q, { hubId })])
  const known = new Set(active.map(({ uuid }) => uuid))
  const ended = bins.flatMap(({ order_id }) => (order_id === null || known.has(order_id) ? [] : [order_id]))
  const left = ended.length === 0 ? [] : await ordersAtHub(q).where('o.uuid', 'in', ended).execute()
  const orders = [...active, ...left].map((row) => ({ ...row, bins: parseBins(row.bins) }))
  return { bins, orders }
}

const binsOfHub = statement((q, { hubId }: { hubId: number }) =>
  q
    .selectFrom('hub_bins')
    .select(['bin', 'capacity', 'state', 'order_uuid as order_id', 'fault'])
    .where('hub_id', '=', hubId)
    .orderBy('bin'),
)

const activeAtHub = statement((q, { hubId }: { hubId: number }) =>
  ordersAtHub(q)
    .where('o.hub_id', '=', hubId)
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', '>', OrderStatus.NEW),
)

/** Orders with how many units they are of. */
export const ordersWithUnits = (q: Queries) =>
  q
    .selectFrom('orders as o')
    .innerJoin('order_items as i', 'i.order_id', 'o.id')
    .groupBy(['o.id', 'o.processing_status', 'o.reserved_bin'])
    .select((eb) => ['o.id', 'o.processing_status', 'o.reserved_bin', eb.fn.sum<number>('i.qty').as('units')])

const ordersAtHub = (q: Queries) =>
  ordersWithUnits(q)
    .groupBy(['o.uuid', 'o.bins', 'o.payer_network'])
    .select(['o.uuid', 'o.bins', 'o.payer_network', isAsked.as('is_asked')])

/** A payment without the processor's id of it has not been answered. Few orders of a hub are unpaid at once. */
const isAsked = sql<Flag>`case when o.processing_status = ${sql.lit(OrderStatus.PENDING_PAYMENT)} and exists (
  select 1 from payments p where p.order_id = o.id and p.is_late = 0 and p.status = 'pending' and p.processor_ref is null
) then 1 else 0 end`
