import type { Refusal } from '../../../protocol/serial/frames.ts'
import type { OperationOutcome } from '../../hardware/controller-events.ts'
import type { OperationEnd, State, UnitRow } from '../../journal/state.ts'
import { NEVER_SENT, type OperationRow } from '../../journal/tables.ts'
import { noteMotionFailed, noteMotionSucceeded, settleMotionBySensor } from '../bins/bin.ts'
import { finishCommandOf } from '../command-results.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../layout.ts'
import { reportUnknown, settleOperation } from '../ledger.ts'
import { bookDrop } from '../stock.ts'
import { clearRow, noteRowFailed } from '../blocked-rows.ts'
import { waitAgain } from '../wanted-units.ts'
import { doubtOfDrops, endDoubt, reportDoubt, TOO_MANY_DROPS } from './drop-count.ts'
import { judge, resolve } from './reconciliation.ts'
import type { CommandReason } from '../../../protocol/mqtt/command.ts'

/** Applies a controller's report on an operation to the journal. A repeated report changes nothing. */
export function applyOutcome(context: Context, operation: OperationRow, outcome: OperationOutcome): void {
  const { state, devices, cloud } = context
  const sameMemory =
    operation.memory_id !== null && operation.memory_id === devices.memoryOf(operation.controller)
  const doubt = outcome.state === 'running' ? undefined : doubtOfDrops(context, operation, outcome)
  const verdict = doubt === undefined ? judge(operation.action, outcome, sameMemory) : 'unknown'
  if (verdict === 'open') return
  if (operation.recheck) state.operations.change(operation.id, { recheck: false })
  const end: OperationEnd = {
    state: verdict,
    why:
      doubt !== undefined
        ? TOO_MANY_DROPS
        : outcome.state === 'none'
          ? sameMemory
            ? NEVER_SENT
            : 'memory_lost'
          : whyOf(outcome),
    moved: outcome.moved,
    drops: doubt === undefined ? outcome.drops : operation.drops,
    ms: outcome.ms,
    ended_at: cloud.now(),
  }
  if (doubt !== undefined) reportDoubt(context, operation, doubt)
  switch (resolve(operation.action, operation.state, verdict)) {
    case 'ignore':
      return
    case 'book':
      return book(context, operation, end)
    case 'end':
      return endMotion(context, operation, end)
    case 'free':
      endAsNothing(context, operation, end.why ?? 'failed')
      if (operation.action !== 'dispense' || end.why === NEVER_SENT) return
      rest(context, operation)
      return noteRowFailed(context, operation, end.why ?? 'failed')
    case 'doubt':
      becomeUnknown(context, operation, end)
      if (operation.action !== 'dispense') settleMotionBySensor(context, operation.device)
      return finishCommandOf(context, operation)
    case 'settle':
      settleOperation(context, operation, { end, by: 'sensor', happened: verdict === 'done' })
  }
}

const whyOf = ({ state, why }: OperationOutcome): string | null =>
  why ?? (state === 'interrupted' || state === 'forgotten' ? state : null)

/** A command was refused: nothing moved, and nothing will move under this id. */
export function applyRefusal(context: Context, operation: OperationRow, why: Refusal): void {
  if (operation.state !== 'open') return
  endAsNothing(context, operation, why)
  if (why !== 'memory_fault' && why !== 'unsupported' && why !== 'unknown_device' && why !== 'bad_argument')
    return rest(context, operation)
  noteMotionFailed(context, operation, why)
  if (operation.action === 'dispense') noteRowFailed(context, operation, why)
}

/** Nothing was written to the line, so the operation never started. */
export function applyNotSent(context: Context, operation: OperationRow): void {
  if (operation.state === 'open') endAsNothing(context, operation, NEVER_SENT)
}

function endAsNothing(context: Context, operation: OperationRow, why: string): void {
  const end = { state: 'nothing', why, moved: false, drops: 0, ms: 0, ended_at: context.cloud.now() } as const
  context.state.operations.end(operation.id, end)
  const unit = unitOf(context, operation)
  if (unit?.state === 'running') waitAgain(context.state, unit)
  finishCommandOf(context, operation)
}

const rest = ({ devices, settings }: Context, { device, id }: OperationRow): void =>
  devices.rest(device, id, { firstMs: settings.retryMs, maxMs: settings.maxRetryMs })

/**
 * Books the units that were seen to fall. One of them is delivered to the operation's order, if the order
 * still waits for it.
 */
function book(context: Context, operation: OperationRow, end: OperationEnd): void {
  const { state, devices } = context
  const units = end.drops - operation.drops
  if (units <= 0 && operation.state === 'done') return
  const unit = unitOf(context, operation)
  const delivers = unit !== undefined && isDelivering(context, operation, unit)
  if (operation.state === 'unknown')
    settleOperation(context, operation, { end, by: 'sensor', happened: true })
  else state.operations.end(operation.id, end)
  devices.endRest(operation.device)
  endDoubt(context, operation)
  const location = placeOf(operation)
  if (location) clearRow(context, location)
  if (delivers) {
    state.orders.setUnit(unit, 'dropped', operation.bin)
    state.orders.addKnownDropped(unit.order_id, unit.line_id)
  } else if (unit?.state === 'running') state.orders.setUnit(unit, 'doubtful', operation.bin)
  bookDrop(context, operation, units, delivers ? 1 : 0)
  finishCommandOf(context, operation)
}

/** Whether a fallen unit still reaches its customer: its order has not been reported READY yet. */
function isDelivering({ state }: Context, operation: OperationRow, unit: UnitRow): boolean {
  const phase = state.orders.find(unit.order_id)?.phase
  if (phase !== 'preparing' && phase !== 'recovering') return false
  // The customer cannot get a unit from a bin of another order. A recovering order claims its bins at its end.
  if (phase === 'preparing' && !holdsBin(state, unit.order_id, operation.bin)) return false
  const isAwaited = operation.state === 'unknown' && (unit.state === 'doubtful' || unit.state === 'waiting')
  return unit.state === 'running' || isAwaited
}

const holdsBin = ({ bins }: State, orderId: string, bin: number | null): boolean =>
  bins.ofOrder(orderId).some(({ number }) => number === bin)

function endMotion(context: Context, operation: OperationRow, end: OperationEnd): void {
  context.state.operations.end(operation.id, end)
  if (end.state === 'done') noteMotionSucceeded(context, { ...operation, moved: end.moved })
  else noteMotionFailed(context, operation, end.why ?? 'failed')
  finishCommandOf(context, operation)
}

/**
 * The outcome is unknown (I1): the hub never retries the operation, and its facing dispenses nothing until
 * the operation is resolved.
 */
function becomeUnknown(context: Context, operation: OperationRow, end: OperationEnd): void {
  const { state } = context
  state.operations.end(operation.id, { ...end, state: 'unknown' })
  const unit = unitOf(context, operation)
  if (unit?.state === 'running') state.orders.setUnit(unit, 'doubtful', operation.bin)
  reportUnknown(context, { ...operation, why: end.why })
}

/**
 * Stops waiting for running operations of an order that ends. Their outcome is unknown until their controller
 * reports.
 */
export function giveUpRunning(context: Context, orderId: string): void {
  for (const operation of context.state.operations.open())
    if (operation.order_id === orderId)
      becomeUnknown(context, operation, { ...operation, why: 'gave_up', ended_at: context.cloud.now() })
}

/**
 * Gives up open operations of devices that the hardware description has moved to another controller, or does
 * not contain any more. The outcome is unknown until sensors, a count or a person settle it.
 */
export function giveUpMoved(context: Context): void {
  const { state, layout, cloud } = context
  for (const operation of state.operations.all()) {
    if (layout.controllerOf(operation.device) === operation.controller) continue
    if (operation.recheck) state.operations.change(operation.id, { recheck: false })
    if (operation.state !== 'open') continue
    becomeUnknown(context, operation, { ...operation, why: 'gave_up', ended_at: cloud.now() })
    finishCommandOf(context, operation)
  }
}

function unitOf({ state }: Context, operation: OperationRow): UnitRow | undefined {
  if (operation.order_id === null) return undefined
  return state.orders
    .units(operation.order_id)
    .find((unit) => unit.line_id === operation.line_id && unit.unit === operation.unit)
}

/** A person resolved an operation of unknown outcome, at the hub or in the cloud. Called within an event. */
export function settleManually(context: Context, operation: OperationRow, happened: boolean): void {
  const dropped = happened && operation.action === 'dispense'
  const drops = dropped ? 1 : operation.drops
  const end = { ...operation, state: 'settled', drops, ended_at: context.cloud.now() } as const
  settleOperation(context, operation, { end, by: 'person', happened })
  // The unit is refunded, now or later: it no longer belongs to an order.
  if (dropped) bookDrop(context, operation, 1, 0)
  const location = placeOf(operation)
  if (location) clearRow(context, location)
}

/**
 * Resolves by command. The same resolution again is a success. Returns `too_late` if the operation was
 * resolved differently, or was never unknown.
 */
export function settleByCommand(
  context: Context,
  operationId: string,
  happened: boolean,
): CommandReason | undefined {
  const operation = context.state.operations.find(operationId)
  if (!operation) return 'not_found'
  if (operation.state === 'unknown') settleManually(context, operation, happened)
  else if (operation.happened !== happened) return 'too_late'
  return undefined
}
