import type { EndedPhase, OrderRow } from '../journal/orders.ts'
import type { Context } from './context.ts'
import { giveUpRunning } from './operations/give-up.ts'
import { inherit } from './recovery/inheritance.ts'
import { intend } from './operations/intend.ts'
import { binDevice, cabinetDevice } from './layout.ts'
import { progressOf } from './ledger.ts'
import type { Step } from './step.ts'

/** Carries out one step: rows, ledger entries and intents, in the transaction under way. */
export function carryOut(context: Context, step: Step): void {
  const { journal, cloud, ledger } = context
  switch (step.kind) {
    case 'prepare':
      journal.orders.prepare(step.orderId, cloud.now(), step.bins)
      for (const bin of step.bins) journal.bins.hold(bin, step.orderId)
      ledger.report({ kind: 'order.preparing', order_id: step.orderId, bins: step.bins })
      return
    case 'hold':
      journal.bins.hold(step.bin, step.orderId)
      return
    case 'release':
      journal.bins.release(step.bin)
      return
    case 'move':
      intend(context, {
        device: binDevice(step.bin),
        action: step.action,
        ...(step.commandId !== undefined && { commandId: step.commandId }),
      })
      return
    case 'dispense':
      dispense(context, step)
      return
    case 'short':
      journal.orders.setUnit({ order_id: step.orderId, line_id: step.lineId, unit: step.unit }, 'short', null)
      return
    case 'ready':
      journal.orders.setReady(step.orderId, cloud.now(), step.bins)
      // One that it does not lie in, and that still moved until now: nobody would ever open it for its customer.
      for (const bin of journal.bins.all())
        if (bin.order_id === step.orderId && !step.bins.includes(bin.number)) journal.bins.release(bin.number)
      ledger.report({
        kind: 'order.ready',
        order_id: step.orderId,
        bins: step.bins,
        lines: progressOf(journal, step.orderId),
      })
      return
    case 'opened':
      journal.bins.setOpened(step.bin, true)
      return
    case 'collecting':
      journal.orders.setCollecting(step.orderId, cloud.now())
      ledger.report({ kind: 'order.collecting', order_id: step.orderId })
      return
    case 'give_up':
      giveUpRunning(context, step.orderId)
      return
    case 'end':
      end(context, step.orderId, step.phase, step.reason)
      return
    case 'inherit':
      inherit(context, step.orderId)
      return
  }
}

function dispense(context: Context, step: Extract<Step, { kind: 'dispense' }>): void {
  const { journal } = context
  const { orderId, lineId, unit, location, bin } = step
  const line = journal.orders.lines(orderId).find((each) => each.line_id === lineId)
  if (!line) return
  journal.orders.setUnit({ order_id: orderId, line_id: lineId, unit }, 'running', bin)
  intend(context, {
    device: cabinetDevice(location.cabinet),
    action: 'dispense',
    shelf: location.shelf,
    row: location.row,
    bin,
    order: { orderId, lineId, unit, productId: line.product_id },
  })
}

function end(context: Context, orderId: number, phase: EndedPhase, reason: string | null): void {
  const { journal, cloud } = context
  const order = journal.orders.find(orderId)
  if (!order) return
  giveUpRunning(context, orderId)
  for (const unit of journal.orders.units(orderId))
    if (unit.state === 'waiting') journal.orders.setUnit(unit, 'short', null)
  journal.orders.end(orderId, phase, cloud.now(), reason)
  reportEnd(context, order, phase, reason)
}

function reportEnd({ journal, ledger }: Context, order: OrderRow, phase: EndedPhase, reason: string | null) {
  const order_id = order.id
  const held = journal.bins.all().filter((bin) => bin.order_id === order_id)
  const bins = held.map((bin) => bin.number)
  const lines = progressOf(journal, order_id)
  switch (phase) {
    case 'completed':
      return ledger.report({ kind: 'order.completed', order_id })
    case 'cancelled':
      return ledger.report({ kind: 'order.cancelled', order_id })
    case 'unclaimed':
      return ledger.report({ kind: 'order.unclaimed', order_id })
    case 'timed_out':
      return ledger.report({ kind: 'order.timed_out', order_id, bins, lines })
    case 'failed':
      return ledger.report({ kind: 'order.failed', order_id, reason: reason ?? 'hardware', bins, lines })
  }
}
