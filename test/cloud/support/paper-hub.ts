import type { CommandOutcome, CommandRequest } from '../../../cloud/gateway/commands.ts'
import { refOf } from '../../../edge/core/operations/intend.ts'
import type { WantedLine } from '../../../protocol/model/hub-commands.ts'
import { CloudEntry, type QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import type { HubEvidence, Motion, WorldEvidence } from '../../invariants/evidence.ts'
import type { Report, Shop } from '../../world/shop.ts'

/** State of an order at the hub. */
type Station = 'queued' | 'preparing' | 'ready' | 'collecting' | 'ended'

interface Line {
  line_id: number
  product_id: number
  quantity: number
  dropped: number
  doubtful: number
}

interface Order {
  queued: QueuedOrder
  station: Station
  lines: Line[]
}

interface Shelf {
  location: string
  initial: number
  restocked: number
  /** Units on the shelf. */
  now: number
  /** Units by the hub's ledger. */
  stock: number
}

interface Doubt {
  operation_id: string
  order_id: string
  line: Line
  /** The truth, which no part can see. */
  fell: boolean
}

/**
 * A simple model of a hub, for a shop: it accepts orders from the outbox, and reports the events of a test
 * like a real hub. Reports wait until they are sent. Its books and shelves are evidence for checks.
 */
export interface PaperHub {
  /** Reads the outbox and acknowledges it. */
  receive(): Promise<void>
  /**
   * An event happens to the `pick`-th of the orders to which it can happen; nothing happens if there is none.
   */
  act(what: HubAct, pick: number): void
  /** Sends the oldest `count` reports. */
  send(count: number): Promise<void>
  execute(request: CommandRequest): Promise<CommandOutcome>
  /** Completes everything that was started. */
  finish(): void
  unsent(): number
  evidence(): { world: WorldEvidence; hub: HubEvidence }
}

export const hubActs = [
  'prepare',
  'drop',
  'doubt',
  'doubt that fell',
  'settle',
  'ready',
  'fail',
  'time out',
  'collect',
  'complete',
  'leave unclaimed',
  'restock',
] as const
export type HubAct = (typeof hubActs)[number]

export function paperHub(shop: Shop, quantities: readonly number[]): PaperHub {
  const orders = new Map<string, Order>()
  const cancelledUnseen = new Set<string>()
  const reports: Report[] = []
  const motions: Motion[] = []
  const ledger: HubEvidence['ledger'][number][] = []
  const refOfOperation = new Map<string, string>()
  const doubts: Doubt[] = []
  let acts = 0
  const shelves = quantities.map((quantity, index): Shelf => {
    const location = `1-1-${index + 1}`
    ledger.push({ location, delta: quantity, cause_id: `seed ${index}`, kind: 'snapshot' })
    return { location, initial: quantity, restocked: 0, now: quantity, stock: quantity }
  })
  const shelfOf = (productId: number): Shelf => shelves[productId - 1]!
  const placeOf = (productId: number) => ({ cabinet: 1, shelf: 1, row: productId })
  const uuid = (): string => `00000000-0000-7000-8000-${String((acts += 1)).padStart(12, '0')}`
  const at = (...stations: Station[]): Order[] =>
    [...orders.values()].filter(({ station }) => stations.includes(station))
  const missing = ({ quantity, dropped, doubtful }: Line): number => quantity - dropped - doubtful

  /** Each order of the model has its own room, because the place of its units does not matter here. */
  const roomOf = (orderId: string): number => [...orders.keys()].indexOf(orderId) + 1

  function fall(productId: number, operation_id: string, bin: number): void {
    shelfOf(productId).now -= 1
    motions.push({
      n: motions.length + 1,
      at: shop.clock.now(),
      device: 'cabinet-1',
      action: 'dispense',
      operation_id,
      detail: { ...placeOf(productId), bin, fallen: 1 },
    })
  }

  function bookDrop(order_id: string, line: Line, operation_id: string, delivered: number): void {
    const shelf = shelfOf(line.product_id)
    shelf.stock -= 1
    ledger.push({ location: shelf.location, delta: -1, cause_id: operation_id, kind: 'dropped' })
    reports.push({
      kind: 'stock.dropped',
      product_id: line.product_id,
      location: placeOf(line.product_id),
      delta: -1,
      quantity: shelf.stock,
      operation_id,
      order_id,
      line_id: line.line_id,
      delivered,
      bin: 1,
    })
  }

  /** An operation for the next unit of an order. */
  function dispense(order: Order, seen: boolean, fell: boolean): void {
    const line = order.lines.find((one) => missing(one) > 0)
    if (!line || shelfOf(line.product_id).now === 0) return
    const order_id = order.queued.order_id
    const operation_id = uuid()
    const unit = line.dropped + line.doubtful
    refOfOperation.set(operation_id, refOf({ order_id, line_id: line.line_id, unit }))
    if (fell) fall(line.product_id, operation_id, roomOf(order_id))
    if (seen) {
      line.dropped += 1
      bookDrop(order_id, line, operation_id, 1)
      return
    }
    line.doubtful += 1
    doubts.push({ operation_id, order_id, line, fell })
    reports.push({
      kind: 'operation.unknown',
      operation_id,
      device: 'cabinet-1',
      action: 'dispense',
      reason: 'no_drop',
      started_at: shop.clock.now(),
      location: placeOf(line.product_id),
      order_id,
      line_id: line.line_id,
      product_id: line.product_id,
    })
    block(line.product_id)
  }

  function block(product_id: number): void {
    const isDoubtful = doubts.some(({ line }) => line.product_id === product_id)
    const blocked = isDoubtful ? 'no_drop' : null
    reports.push({ kind: 'state', state: { of: 'row', location: placeOf(product_id), blocked, since: 1 } })
  }

  function settle(doubt: Doubt): void {
    const { operation_id, order_id, line, fell } = doubt
    reports.push({ kind: 'operation.settled', operation_id, by: 'person', happened: fell })
    // Its money was refunded: it is not delivered.
    if (fell) bookDrop(order_id, line, operation_id, 0)
    doubts.splice(doubts.indexOf(doubt), 1)
    block(line.product_id)
  }

  function move(order: Order | undefined, to: Station, report: (order: Order) => Report): void {
    if (!order) return
    order.station = to
    reports.push(report(order))
  }
  const idOf = ({ queued }: Order) => ({ order_id: queued.order_id })
  const progress = (order: Order) => ({
    ...idOf(order),
    bins: [1],
    lines: order.lines.map(({ line_id, dropped, doubtful }) => ({ line_id, dropped, doubtful, bins: [1] })),
  })
  const fail = (order: Order): Report => ({ kind: 'order.failed', reason: 'jam', ...progress(order) })
  const timeOut = (order: Order): Report => ({ kind: 'order.timed_out', ...progress(order) })

  function prepare(order: Order | undefined): void {
    if (!order) return
    if (shop.clock.now() > order.queued.start_by) move(order, 'ended', timeOut)
    else move(order, 'preparing', () => ({ kind: 'order.preparing', bins: [1], ...idOf(order) }))
  }

  /** An order without a drop has failed. */
  function ready(order: Order | undefined): void {
    if (order?.lines.every(({ dropped }) => dropped === 0)) move(order, 'ended', fail)
    else move(order, 'ready', () => ({ kind: 'order.ready', ...progress(order!) }))
  }

  function act(what: HubAct, pick: number): void {
    const one = <T>(list: readonly T[]): T | undefined => list[pick % Math.max(1, list.length)]
    switch (what) {
      case 'prepare':
        return prepare(one(at('queued')))
      case 'drop':
      case 'doubt':
      case 'doubt that fell': {
        const order = one(at('preparing'))
        if (order) dispense(order, what === 'drop', what !== 'doubt')
        return
      }
      case 'settle': {
        const doubt = one(doubts)
        if (doubt) settle(doubt)
        return
      }
      case 'ready':
        return ready(one(at('preparing')))
      case 'fail':
        return move(one(at('preparing')), 'ended', fail)
      case 'time out':
        return move(one(at('queued', 'preparing')), 'ended', timeOut)
      case 'collect':
        return move(one(at('ready')), 'collecting', (order) => ({ kind: 'order.collecting', ...idOf(order) }))
      case 'complete':
        return move(one(at('ready', 'collecting')), 'ended', (order) => ({
          kind: 'order.completed',
          ...idOf(order),
        }))
      case 'leave unclaimed':
        return move(one(at('ready')), 'ended', (order) => ({ kind: 'order.unclaimed', ...idOf(order) }))
      case 'restock':
        return restock((pick % shelves.length) + 1)
    }
  }

  function restock(product_id: number): void {
    const shelf = shelfOf(product_id)
    const restock_id = uuid()
    shelf.restocked += 1
    shelf.now += 1
    shelf.stock += 1
    ledger.push({ location: shelf.location, delta: 1, cause_id: restock_id, kind: 'restocked' })
    const location = placeOf(product_id)
    reports.push({
      kind: 'stock.restocked',
      product_id,
      location,
      delta: 1,
      quantity: shelf.stock,
      restock_id,
    })
  }

  /** Returns true if the hub will not start the order. */
  function cancel(orderId: string): boolean {
    const order = orders.get(orderId)
    if (order && order.station !== 'queued') return false
    if (order) order.station = 'ended'
    else cancelledUnseen.add(orderId)
    reports.push({ kind: 'order.cancelled', order_id: orderId })
    return true
  }

  /** The unstarted rest of a line stays on the shelf. Returns false if the order is unknown. */
  function reduce(orderId: string, lines: readonly WantedLine[]): boolean {
    const order = orders.get(orderId)
    for (const { line_id, wanted } of lines)
      for (const line of order?.lines ?? [])
        if (line.line_id === line_id)
          line.quantity = Math.max(Math.min(line.quantity, wanted), line.dropped + line.doubtful)
    return order !== undefined
  }

  function take(entry: CloudEntry): void {
    if (entry.kind === 'order.queued') {
      const { order_id, lines } = entry.order
      // The transaction may run again.
      if (orders.has(order_id)) return
      orders.set(order_id, {
        queued: entry.order,
        station: cancelledUnseen.has(order_id) ? 'ended' : 'queued',
        lines: lines.map((line) => ({ ...line, dropped: 0, doubtful: 0 })),
      })
    } else if (entry.kind === 'order.cancel') cancel(entry.order_id)
    else if (entry.kind === 'order.reduce') reduce(entry.order_id, entry.lines)
  }

  return {
    act,
    receive: () =>
      shop.context.db.transact(async (tx) => {
        await tx.forUpdate(tx.q.selectFrom('hub_outboxes').selectAll()).execute()
        const entries = tx.q.selectFrom('hub_outbox_entries').select(['seq', 'tag', 'body']).orderBy('seq')
        for (const { seq, tag, body } of await entries.execute()) {
          take(CloudEntry.parse(JSON.parse(body)))
          await tx.q.deleteFrom('hub_outbox_entries').where('seq', '=', seq).execute()
          await tx.q.updateTable('hub_outboxes').set({ base: seq, base_tag: tag }).execute()
        }
      }),
    async send(count) {
      await shop.report(...reports.splice(0, count))
    },
    execute({ body }) {
      const commandId = uuid()
      if (body.name === 'reduce_order')
        return Promise.resolve(
          reduce(body.order_id, body.lines)
            ? { kind: 'executed', commandId, data: {}, durationMs: 1 }
            : { kind: 'refused', commandId, reason: 'not_found', data: null },
        )
      if (body.name !== 'cancel_order') return Promise.resolve({ kind: 'offline' })
      return Promise.resolve(
        cancel(body.order_id)
          ? { kind: 'executed', commandId, data: {}, durationMs: 1 }
          : { kind: 'refused', commandId, reason: 'too_late', data: null },
      )
    },
    finish() {
      for (const order of at('queued')) prepare(order)
      for (const order of at('preparing')) {
        while (order.lines.some((line) => missing(line) > 0 && shelfOf(line.product_id).now > 0)) {
          const before = acts
          dispense(order, true, true)
          if (acts === before) break
        }
        ready(order)
      }
      while (doubts.length > 0) settle(doubts[0]!)
      while (at('ready', 'collecting').length > 0) act('complete', 0)
    },
    unsent: () => reports.length,
    evidence: () => ({
      world: {
        motions,
        shelves,
        unjournaled: [],
        overran: [],
        soldUnproven: [],
        moving: [],
        unlocked: [],
        refOfOperation,
        doubleDropsRaised: false,
      },
      hub: {
        stock: shelves.map(({ location, stock }, index) => ({
          location,
          product_id: index + 1,
          quantity: stock,
        })),
        ledger,
        alarms: [],
        unsettled: doubts.map(({ operation_id, line }) => ({
          operation_id,
          location: `1-1-${line.product_id}`,
        })),
        open: [],
        pending: reports.length,
        deadLetters: [],
        orders: [...orders].map(([order_id, { station }]) => ({ order_id, finished: station === 'ended' })),
        config: { accepting_orders: true, disabled_bins: [], disabled_fridges: [] },
      },
    }),
  }
}
