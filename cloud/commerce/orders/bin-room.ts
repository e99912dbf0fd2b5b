import { sql, type SelectQueryBuilder } from 'kysely'
import { isActive, OrderStatus } from '../../../protocol/model/order-status.ts'
import { type BinObstacle, type TakenBin, takenBinsText } from '../../../protocol/model/taken-bins.ts'
import type { State } from '../../../protocol/mqtt/hub-entries.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import type { Tables } from '../../platform/store/schema.ts'
import type { Flag } from '../../platform/store/table.ts'
import { statement } from '../../platform/store/statement.ts'
import { LAST_ACTIVE, parseBins } from './order-rows.ts'
import { clearAlarm, raiseAlarm } from '../../events/alarms/alarms.ts'
import { deriveOfHub } from '../../events/derive-of-hub.ts'
import type { CloudContext } from '../../platform/context.ts'

/**
 * The bins that a further order can use. An empty bin counts, and so does a bin that becomes free without a customer.
 * Each paid order without a bin takes as many bins as its units need. An order takes them too while the processor is
 * asked for its money. An order that waits for its customer or a bank takes none: otherwise customers who do not pay
 * could block all others. An integrator's claim takes the reserved bin. Checkout checks this before it takes money; the
 * queue uses it to estimate waiting times.
 */
export interface BinRoom {
  /** Capacities of the bins in service, the smallest first. */
  capacities: readonly number[]
  /** Number of bins that are empty now and not reserved. */
  empty: number
  /** Numbers of the empty bins that an integrator can claim. */
  claimable: readonly number[]
  /** Empty bins, plus bins that become free automatically, minus the needs of the waiting orders. May be below 0. */
  free: number
}

/** A bin in the hub's last report. */
export type BinAtHub = Pick<
  Extract<State, { of: 'bin' }>,
  'bin' | 'capacity' | 'state' | 'order_id' | 'fault'
>

/** An open order of a hub that is paid or being paid. */
export interface OrderAtHub {
  id: number
  /** The order's id at hubs. */
  uuid: string
  processing_status: OrderStatus
  reserved_bin: number | null
  /** Whether the processor was asked for its money and has not answered. */
  is_asked: Flag
  /** The network that reserves its stock while it is unpaid (`unpaid.ts`). */
  payer_network: string | null
  /** The bins that its hub reported. */
  bins: readonly number[]
  units: number
}

/** Whether a bin with an order becomes free without a customer, by the order's status. */
const comesFree: Record<OrderStatus, boolean> = {
  [OrderStatus.NEW]: false,
  [OrderStatus.PENDING_PAYMENT]: false,
  // The hub has started it, but its ledger does not show that yet.
  [OrderStatus.QUEUED]: true,
  [OrderStatus.PREPARING]: true,
  [OrderStatus.READY]: false,
  [OrderStatus.COLLECTING]: true,
  // Emptied and closed: only the lift must go down.
  [OrderStatus.COMPLETED]: true,
  // Its goods were left behind.
  [OrderStatus.CANCELLED]: false,
  [OrderStatus.TIMED_OUT]: false,
  [OrderStatus.FAILED]: false,
  [OrderStatus.EXPIRED]: false,
}

/**
 * The bins of a hub if none is free or becomes free automatically, so that the hub can sell nothing. Null otherwise.
 */
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

/** The rule itself. `orders`: the hub's active orders except carts, and the orders that its bins hold. */
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
  // The hub may have put a claimed order into another bin, but each bin has only one claim at a time.
  const claims = new Set(orders.filter(isActiveOrder).map(({ reserved_bin }) => reserved_bin))
  return {
    capacities,
    empty: empty.length,
    claimable: empty.map(({ bin }) => bin).filter((number) => !claims.has(number)),
    free: empty.length + coming.length - needed,
  }
}

/** The order of a bin, by the hub's report of the bin or, before that report, of the order. */
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

/** The number of bins for an order with this many units: all bins if the units do not fit. */
function binsFor(capacities: readonly number[], units: number): number {
  let left = units
  let count = 0
  for (const capacity of capacities) {
    if (left <= 0) break
    left -= capacity
    count += 1
  }
  return Math.max(1, count)
}

/** Bins that an order needs in addition to its reserved one. */
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

/** The capacity of a hub for a further order. */
export interface HubRoom {
  bins: BinRoom
  /** Units that unpaid orders reserve, by the payer's network. */
  unpaidUnits: ReadonlyMap<string, number>
}

/** The capacity of a hub with these disabled bins. */
export const roomOf = ({ bins, orders }: HubLoad, disabled: readonly number[]): HubRoom => ({
  bins: binRoom(bins, disabled, orders),
  unpaidUnits: unpaidUnits(orders),
})

function unpaidUnits(orders: readonly OrderAtHub[]): Map<string, number> {
  const units = new Map<string, number>()
  for (const { processing_status: status, payer_network: network, units: more } of orders)
    if (status === OrderStatus.PENDING_PAYMENT && network !== null)
      units.set(network, (units.get(network) ?? 0) + more)
  return units
}

export async function readTakenBins(
  q: Queries,
  hubId: number,
  disabled: readonly number[],
): Promise<TakenBin[] | null> {
  const { bins, orders } = await readHubLoad(q, { hubId })
  return takenBins(bins, disabled, orders)
}

/** A hub, or the hub of an order. */
type OfHub = { hubId: number } | { orderId: number }

/** A hub's last reports of its bins, its open orders that are paid or being paid, and the orders that its bins hold. */
export interface HubLoad {
  bins: readonly BinAtHub[]
  orders: readonly OrderAtHub[]
}

export async function readHubLoad(q: Queries, of: OfHub): Promise<HubLoad> {
  const [bins, active] = await Promise.all(
    'hubId' in of
      ? [binsOfHub(q, of), activeAtHub(q, of)]
      : [binsOfOrdersHub(q, of), activeAtOrdersHub(q, of)],
  )
  const known = new Set(active.map(({ uuid }) => uuid))
  const ended = bins.flatMap(({ order_id }) => (order_id === null || known.has(order_id) ? [] : [order_id]))
  const left = ended.length === 0 ? [] : await ordersAtHub(q).where('o.uuid', 'in', ended).execute()
  const orders = [...active, ...left].map((row) => ({ ...row, bins: parseBins(row.bins) }))
  return { bins, orders }
}

type Hub = number | SelectQueryBuilder<Tables, 'orders', { hub_id: number }>
const hubOf = (q: Queries, orderId: number): Hub =>
  q.selectFrom('orders').select('hub_id').where('id', '=', orderId)

const binsAt = (q: Queries, hub: Hub) =>
  q
    .selectFrom('hub_bins')
    .select(['bin', 'capacity', 'state', 'order_uuid as order_id', 'fault'])
    .where('hub_id', '=', hub)
    .orderBy('bin')
const binsOfHub = statement((q, { hubId }: { hubId: number }) => binsAt(q, hubId))
const binsOfOrdersHub = statement((q, { orderId }: { orderId: number }) => binsAt(q, hubOf(q, orderId)))

const activeAt = (q: Queries, hub: Hub) =>
  ordersAtHub(q)
    .where('o.hub_id', '=', hub)
    .where('o.processing_status', '<=', LAST_ACTIVE)
    .where('o.processing_status', '>', OrderStatus.NEW)
const activeAtHub = statement((q, { hubId }: { hubId: number }) => activeAt(q, hubId))
const activeAtOrdersHub = statement((q, { orderId }: { orderId: number }) => activeAt(q, hubOf(q, orderId)))

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

/** An unanswered operation means that the processor is being asked. A hub has few unpaid orders at once. */
const isAsked = sql<Flag>`case when o.processing_status = ${sql.lit(OrderStatus.PENDING_PAYMENT)} and exists (
  select 1 from payments p join money_operations m on m.kind = 'payment' and m.subject = p.id
  where p.order_id = o.id and p.is_late = 0 and p.status = 'pending' and m.state = 'unanswered'
) then 1 else 0 end`

/**
 * Raises the alarm `no_bin_available` while a hub has no bin that is free or becomes free automatically, and clears it.
 * Call it in each transaction that changes a hub's bins: their states, their orders, or the disabled ones.
 */
export function checkBins(tx: Tx, context: CloudContext, hubId: number): void {
  deriveOfHub(tx, hubId, 'bins', async () => {
    const hub = await tx.q
      .selectFrom('hubs')
      .select('disabled_bins')
      .where('id', '=', hubId)
      .executeTakeFirst()
    if (!hub) return
    const taken = await readTakenBins(tx.q, hubId, JSON.parse(hub.disabled_bins) as number[])
    const incident = { hubId, kind: 'no_bin_available', subject: null } as const
    if (!taken) return () => clearAlarm(tx, context, incident)
    const details = {
      bins: taken.map(({ bin, reason, orderId }) => ({ bin_number: bin, reason, order_id: orderId })),
      order_ids: taken.flatMap(({ orderId }) => orderId ?? []),
    }
    // Another order or bin belongs to the same incident, and people read the present state.
    const refreshes = true
    return () => raiseAlarm(tx, context, { ...incident, detail: takenBinsText(taken), details, refreshes })
  })
}

/** The statuses that change the taken bins when they begin. */
export const changesBins = (status: OrderStatus): boolean => status >= OrderStatus.READY

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
