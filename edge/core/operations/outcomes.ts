import type { Refusal } from '../../../protocol/serial/frames.ts'
import type { OperationOutcome } from '../../hardware/controllers.ts'
import type { OperationEnd, OperationRow } from '../../journal/operations.ts'
import type { UnitRow } from '../../journal/orders.ts'
import { finishCommandOf } from '../command-results.ts'
import type { Context } from '../context.ts'
import { noteMotionFailed, noteMotionSucceeded, settleMotionBySensor } from '../bins/motions.ts'
import { bookDrop } from '../stock.ts'
import { judge, NEVER_SENT, type Verdict } from './verdict.ts'

/** Takes a controller's word on an operation into the books. Saying it again changes nothing. */
export function applyOutcome(context: Context, operation: OperationRow, outcome: OperationOutcome): void {
  const sameMemory =
    operation.memory_id !== null && operation.memory_id === context.devices.memoryOf(operation.controller)
  const verdict = judge(operation.action, outcome, sameMemory)
  if (verdict === 'open') return
  if (operation.recheck === 1) context.journal.operations.markRecheck(operation.id, false)
  const end: OperationEnd = {
    state: verdict,
    why: outcome.state === 'none' ? (sameMemory ? NEVER_SENT : 'memory_lost') : whyOf(outcome),
    moved: outcome.moved ? 1 : 0,
    drops: outcome.drops,
    ms: outcome.ms,
    ended_at: context.cloud.now(),
  }
  if (operation.action === 'dispense') applyDispense(context, operation, verdict, end)
  else applyMotion(context, operation, verdict, end)
}

const whyOf = ({ state, why }: OperationOutcome): string | null =>
  why ?? (state === 'interrupted' || state === 'forgotten' ? state : null)

/** A command was refused: nothing moved, and never will under this id. */
export function applyRefusal(context: Context, operation: OperationRow, why: Refusal): void {
  if (operation.state !== 'open') return
  endAsNothing(context, operation, why)
  if (why === 'memory_fault' || why === 'unsupported' || why === 'unknown_device' || why === 'bad_argument')
    noteMotionFailed(context, operation, why)
  else rest(context, operation)
}

/** Nothing was written to the line: the operation never was. */
export function applyNotSent(context: Context, operation: OperationRow): void {
  if (operation.state === 'open') endAsNothing(context, operation, NEVER_SENT)
}

function endAsNothing(context: Context, operation: OperationRow, why: string): void {
  const end = { state: 'nothing', why, moved: 0, drops: 0, ms: 0, ended_at: context.cloud.now() } as const
  context.journal.operations.end(operation.id, end)
  const unit = unitOf(context, operation)
  if (unit?.state === 'running') context.journal.orders.setUnit(unit, 'waiting', null)
  finishCommandOf(context, operation)
}

const rest = ({ devices, settings }: Context, { device }: OperationRow): void =>
  devices.rest(device, settings.retryMs, settings.maxRetryMs)

function applyDispense(context: Context, operation: OperationRow, verdict: Verdict, end: OperationEnd): void {
  const { journal } = context
  // What a count or a person has settled is in the books by their word.
  if (operation.state === 'settled') return
  const unit = unitOf(context, operation)
  const isOpen = operation.state === 'open'
  switch (verdict) {
    case 'done': {
      const units = end.drops - operation.drops
      if (units <= 0 && operation.state === 'done') return
      journal.operations.end(operation.id, end)
      context.devices.endRest(operation.device)
      const delivers = unit !== undefined && isDelivering(context, operation, unit)
      if (delivers) {
        journal.orders.setUnit(unit, 'dropped', operation.bin)
        journal.orders.addKnownDropped(unit.order_id, unit.line_id)
      }
      if (operation.state === 'unknown') settled(context, operation, true)
      bookDrop(context, operation, units, delivers ? 1 : 0)
      return
    }
    case 'nothing':
      if (isOpen) {
        endAsNothing(context, operation, end.why ?? 'failed')
        if (end.why !== NEVER_SENT) rest(context, operation)
      } else if (operation.state === 'unknown') {
        journal.operations.end(operation.id, end)
        settled(context, operation, false)
      }
      return
    case 'unknown':
      if (isOpen) becomeUnknown(context, operation, end)
      return
    case 'open':
    case 'failed':
      return
  }
}

/** Whether a unit that fell still reaches the customer for whom it fell: its order has not been reported READY yet. */
function isDelivering({ journal }: Context, operation: OperationRow, unit: UnitRow): boolean {
  const phase = journal.orders.find(unit.order_id)?.phase
  if (phase !== 'preparing' && phase !== 'inherited') return false
  return unit.state === 'running' || (unit.state === 'doubtful' && operation.state === 'unknown')
}

function settled({ ledger }: Context, operation: OperationRow, happened: boolean): void {
  ledger.report({ kind: 'operation.settled', operation_id: operation.id, by: 'sensor', happened })
}

/** Nobody can say (I1): never tried again by itself, and its facing gives nothing until it is settled. */
export function becomeUnknown(context: Context, operation: OperationRow, end: OperationEnd): void {
  const { journal, ledger } = context
  journal.operations.end(operation.id, { ...end, state: 'unknown' })
  const unit = unitOf(context, operation)
  if (unit?.state === 'running') journal.orders.setUnit(unit, 'doubtful', operation.bin)
  ledger.report({
    kind: 'operation.unknown',
    operation_id: operation.id,
    device: operation.device,
    action: operation.action,
    reason: end.why ?? 'unknown',
    order_id: operation.order_id,
    line_id: operation.line_id,
    product_id: operation.product_id,
  })
}

function applyMotion(context: Context, operation: OperationRow, verdict: Verdict, end: OperationEnd): void {
  const { journal } = context
  if (operation.state === 'unknown' && (verdict === 'done' || verdict === 'failed')) {
    journal.operations.end(operation.id, end)
    settled(context, operation, verdict === 'done')
    return
  }
  if (operation.state !== 'open') return
  switch (verdict) {
    case 'done':
      journal.operations.end(operation.id, end)
      noteMotionSucceeded(context, operation)
      break
    case 'failed':
      journal.operations.end(operation.id, end)
      noteMotionFailed(context, operation, end.why ?? 'failed')
      break
    case 'nothing':
      endAsNothing(context, operation, end.why ?? 'failed')
      return
    case 'unknown':
      becomeUnknown(context, operation, end)
      settleMotionBySensor(context, operation.device)
      break
    case 'open':
      return
  }
  finishCommandOf(context, operation)
}

export function unitOf({ journal }: Context, operation: OperationRow): UnitRow | undefined {
  if (operation.order_id === null) return undefined
  return journal.orders
    .units(operation.order_id)
    .find((unit) => unit.line_id === operation.line_id && unit.unit === operation.unit)
}
