import type { WantedLine } from '../../../protocol/model/hub-commands.ts'
import type { QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'
import type { LineProgress } from '../../../protocol/mqtt/hub-entries.ts'
import type { State } from '../../journal/state.ts'
import type { EndedPhase, OrderPhase, OrderRow } from '../../journal/tables.ts'
import { ApplyError } from '../../journal/inbox.ts'
import type { Context } from '../context.ts'
import { cabinetDevice } from '../layout.ts'
import { intend, isNotable } from '../operations/intend.ts'
import { giveUpRunning } from '../operations/outcomes.ts'
import type { Step } from '../step.ts'
import { limitLine } from '../wanted-units.ts'

/** The life of an order: each function journals one change and reports it, in the current transaction. */

/**
 * Accepts an order into the journal; from then on this hub must finish it. A known order is not changed.
 * Throws `ApplyError` if the order has too many units, names a line twice, or has a unit without a valid
 * note.
 */
export function acceptOrder(
  { state, cloud, settings }: Context,
  order: QueuedOrder,
  phase: OrderPhase,
  known?: { bins: number[]; dropped: ReadonlyMap<number, number> },
): void {
  if (state.orders.find(order.order_id)) return
  const units = order.lines.reduce((sum, line) => sum + line.quantity, 0)
  if (units > settings.orderUnits)
    throw new ApplyError('invalid', `an order of ${units} units cannot be taken`)
  const { order_id } = order
  if (new Set(order.lines.map(({ line_id }) => line_id)).size < order.lines.length)
    throw new ApplyError('invalid', 'an order that names a line twice cannot be taken')
  for (const { line_id, quantity } of order.lines)
    if (!isNotable({ order_id, line_id, unit: quantity - 1 }))
      throw new ApplyError('invalid', `an order with a line ${line_id} cannot be taken`)
  state.orders.add({
    id: order.order_id,
    order_number: order.number,
    phase,
    reserved_bin: order.bin,
    open_when_ready: order.open_when_ready,
    start_by: order.start_by,
    bins: known?.bins ?? [],
    lines: order.lines.map(({ line_id, product_id, quantity }) => ({
      line_id,
      product_id,
      known_dropped: Math.min(quantity, known?.dropped.get(line_id) ?? 0),
      units: Array.from({ length: quantity }, () => ({ state: 'waiting', bin: null }) as const),
    })),
    received_at: cloud.now(),
  })
}

/** Whether this store's own history includes the epoch under which the order was queued. */
export const isOwn = ({ outbox }: Context, order: QueuedOrder): boolean =>
  order.hub_epoch !== null && outbox.knownEpochs().includes(order.hub_epoch)

/** Cancels an order that has not started. Returns the reason if it cannot be cancelled. */
export function cancelOrder(context: Context, orderId: string): CommandReason | undefined {
  const order = context.state.orders.find(orderId)
  if (order?.phase === 'cancelled') return undefined
  if (!order) return 'not_found'
  if (order.phase !== 'queued') return 'too_late'
  enterPhase(context, orderId, { phase: 'cancelled', ended_at: context.cloud.now() })
  return undefined
}

/**
 * Reduces an order: surplus units whose dispensing has not started stay on the shelf. Counts are absolute, so
 * repeating the call changes nothing. Returns false if the order is unknown.
 */
export function reduceOrder({ state }: Context, orderId: string, lines: readonly WantedLine[]): boolean {
  if (!state.orders.find(orderId)) return false
  for (const { line_id, wanted } of lines) limitLine(state, orderId, line_id, wanted)
  return true
}

/**
 * The cloud has ended an order and refunds it. Units whose dispensing has not started stay on the shelf. The
 * bin does not open automatically, so that no customer gets both goods and money.
 */
export function withdrawOrder(context: Context, orderId: string): void {
  if (cancelOrder(context, orderId) !== 'too_late') return
  const lines = context.state.orders.find(orderId)!.lines.map(({ line_id }) => ({ line_id, wanted: 0 }))
  reduceOrder(context, orderId, lines)
  context.state.orders.change(orderId, { open_when_ready: false })
}

/** Starts to prepare an order in these bins. They must not belong to another order. */
export function prepareOrder(context: Context, orderId: string, bins: number[]): void {
  const { state, cloud } = context
  for (const bin of bins) state.bins.hold(bin, orderId)
  enterPhase(context, orderId, { phase: 'preparing', preparing_at: cloud.now(), bins })
}

/** Starts to dispense one unit. */
export function dispenseUnit(context: Context, step: Extract<Step, { kind: 'dispense' }>): void {
  const { orderId, lineId, unit, location, bin } = step
  const { orders } = context.state
  const line = orders.find(orderId)?.lines.find((each) => each.line_id === lineId)
  if (!line) return
  orders.setUnit({ order_id: orderId, line_id: lineId, unit }, 'running', bin)
  const { shelf, row } = location
  intend(context, {
    device: cabinetDevice(location.cabinet),
    action: 'dispense',
    dispense: {
      shelf,
      row,
      bin,
      productId: line.product_id,
      unit: { order_id: orderId, line_id: lineId, unit },
    },
  })
}

/** The order is ready for its customer in these bins. */
export function readyOrder(context: Context, orderId: string, bins: number[]): void {
  const { state, cloud } = context
  // Releases a bin without units that was still moving until now: no customer would ever open it.
  for (const { number } of state.bins.ofOrder(orderId)) if (!bins.includes(number)) state.bins.release(number)
  enterPhase(context, orderId, { phase: 'ready', ready_at: cloud.now(), bins })
}

export const collectOrder = (context: Context, orderId: string): void =>
  enterPhase(context, orderId, { phase: 'collecting', collecting_at: context.cloud.now() })

/** Ends an order. Its running operations become unknown, and its waiting units are not dispensed. */
export function endOrder(context: Context, orderId: string, phase: EndedPhase, reason: string | null): void {
  const { state, cloud } = context
  if (!state.orders.find(orderId)) return
  giveUpRunning(context, orderId)
  for (const unit of state.orders.units(orderId))
    if (unit.state === 'waiting') state.orders.setUnit(unit, 'short', null)
  const bins = state.bins.ofOrder(orderId).map((bin) => bin.number)
  enterPhase(context, orderId, { phase, ended_at: cloud.now(), reason }, bins)
}

/** Changes an order's phase and reports it. `bins`: the reported bins, if they are not the order's. */
function enterPhase(
  context: Context,
  orderId: string,
  change: Partial<OrderRow> & Pick<OrderRow, 'phase'>,
  bins?: number[],
): void {
  const { orders } = context.state
  orders.change(orderId, change)
  reportPhase(context, orders.find(orderId)!, bins)
}

/** Reports the phase of an order to the cloud. */
export function reportPhase(
  { state, ledger }: Context,
  { id: order_id, phase, reason, bins: own }: Pick<OrderRow, 'id' | 'phase' | 'reason' | 'bins'>,
  bins = [...own],
): void {
  switch (phase) {
    case 'queued':
    case 'recovering':
      return
    case 'preparing':
      return ledger.report({ kind: 'order.preparing', order_id, bins })
    case 'ready':
    case 'timed_out':
      return ledger.report({ kind: `order.${phase}`, order_id, bins, lines: progressOf(state, order_id) })
    case 'collecting':
    case 'completed':
    case 'cancelled':
    case 'unclaimed':
      return ledger.report({ kind: `order.${phase}`, order_id })
    case 'failed': {
      const lines = progressOf(state, order_id)
      return ledger.report({ kind: 'order.failed', order_id, reason: reason ?? 'hardware', bins, lines })
    }
  }
}

/** The progress of each line of an order, in absolute counts. */
export function progressOf({ orders }: State, orderId: string): LineProgress[] {
  const lines = orders.find(orderId)?.lines ?? []
  return lines.map(({ line_id, units }) => {
    const fell = units.filter((unit) => unit.state === 'dropped' || unit.state === 'doubtful')
    return {
      line_id,
      dropped: fell.filter((unit) => unit.state === 'dropped').length,
      doubtful: fell.filter((unit) => unit.state === 'doubtful').length,
      bins: [...new Set(fell.flatMap((unit) => unit.bin ?? []))].toSorted((a, b) => a - b),
    }
  })
}
