import { controllerSubject, deviceSubject } from '../../protocol/model/subject.ts'
import { CloudEntry, type DesiredState, type QueuedOrder } from '../../protocol/mqtt/cloud-entries.ts'
import type { ControllerEvents, DeviceEvent } from '../hardware/controller-events.ts'
import { NotTakenError } from '../hardware/serial-link.ts'
import { ApplyError, type LeaveOut } from '../journal/inbox.ts'
import { settleMotionBySensor } from './bins/bin.ts'
import { endReconnects } from './commands.ts'
import type { Context } from './context.ts'
import { applyConfig } from './fridges.ts'
import { numberOf } from './layout.ts'
import { setAlarm } from './ledger.ts'
import { loseFirmware, meetFirmware, noteFirmware, noteFirmwareAnswer } from './firmware.ts'
import { doubtedInto } from './operations/drop-count.ts'
import { ask } from './operations/intend.ts'
import { applyOutcome, applyRefusal } from './operations/outcomes.ts'
import { acceptOrder, isOwn, reduceOrder, withdrawOrder } from './orders/orders.ts'
import { endRecovery, importListed, meetController, noteDeviceOf } from './recovery/controllers.ts'
import { acceptRecovering, applySnapshot } from './recovery/orders.ts'
import { applyCount, applyPlanogram } from './stock.ts'

/** Translates controller reports into events for the core's actor. */
export function controllerEventsOf(context: () => Context): ControllerEvents {
  const handle = (work: (context: Context) => void): void => {
    if (!context().handle(() => work(context()))) throw new NotTakenError('the disk is full')
  }
  return {
    onUp(controller, identity) {
      const { devices } = context()
      const wasMet = devices.isMet(controller)
      try {
        handle((context) => {
          meetController(context, controller, identity)
          meetFirmware(context, controller)
          if (devices.isUp(controller)) endReconnects(context, controller)
        })
      } catch (error) {
        // This store may be a copy, and the controller's memory may prove it. The hub uses nothing of it
        // before it is journaled.
        devices.turnAway(controller, wasMet)
        throw error
      }
    },
    // A connection is in memory alone, so its loss is noted at once, whatever the state of the storage.
    onDown(controller, _, boot) {
      const { devices, otherBoards, ownBoots } = context()
      const wasOwn = devices.isUp(controller) || otherBoards.get(controller)?.isForeign === false
      if (wasOwn && boot !== undefined) ownBoots.set(controller, boot)
      otherBoards.delete(controller)
      devices.down(controller)
      loseFirmware(context(), controller)
      context().handle(() => {})
    },
    onResult: (_, outcome) =>
      handle((context) => {
        const operation = context.state.operations.find(outcome.operationId)
        if (operation) applyOutcome(context, operation, outcome)
      }),
    onRefused: (_, operationId, why) =>
      context().handleUnrepeated(() => {
        const operation = context().state.operations.find(operationId)
        if (operation) applyRefusal(context(), operation, why)
      }),
    onListed: (controller, operations) => handle((context) => importListed(context, controller, operations)),
    onFirmware: (controller, about) => handle((context) => noteFirmware(context, controller, about)),
    onAnswered: (controller, request, why) =>
      context().handleUnrepeated(() => noteFirmwareAnswer(context(), controller, request, why)),
    onDevice(controller, event) {
      const { layout, otherBoards } = context()
      const otherBoard = otherBoards.get(controller)
      if (layout.controllerOf(event.device) !== controller) noteMisplaced(context(), controller, event.device)
      else if (otherBoard)
        context().handle(() => noteDeviceOf(context(), controller, otherBoard, event.device))
      else {
        // Only a drop must be stored before it is acknowledged (SPEC §4).
        if (event.drop !== undefined) handle((context) => noteLateDrop(context, event))
        noteValues(context(), event)
      }
    },
  }
}

/**
 * Notes the values of a report in memory, at once and only once. A report that its controller must repeat until the disk
 * has space would delay all later reports, and each copy would count as a new reading.
 */
function noteValues(context: Context, event: DeviceEvent): void {
  const { state, devices, handle, handleUnrepeated } = context
  const { device } = event
  const bin = numberOf('bin', device)
  const isMoved = state.operations
    .open()
    .some((operation) => operation.device === device || (bin !== undefined && operation.bin === bin))
  const isFilled = bin !== undefined && event.occupied === true && devices.bin(bin).occupied !== true
  devices.note(event, isMoved)
  const doubted = isFilled ? doubtedInto(context, bin) : []
  const isUnknown = bin !== undefined && state.operations.unknown().some((each) => each.device === device)
  if (!isUnknown && doubted.length === 0) return void handle(() => {})
  handleUnrepeated(() => {
    settleMotionBySensor(context, device)
    for (const operation of doubted) ask(context, operation)
  }, `settle ${device}`)
}

/**
 * A device of another line has reported: the lines are mixed up. Its report is ignored, and its bins stay out of use,
 * because the right devices of that line do not report.
 */
function noteMisplaced(context: Context, controller: string, device: string): void {
  context.otherBoards.get(controller)?.reported.add(device)
  const detail = `${device} is on its line`
  context.handleUnrepeated(
    () => setAlarm(context, 'controller_foreign', controllerSubject(controller), true, detail),
    `${detail}: ${controller}`,
  )
}

/**
 * A unit fell after its operation's result. The controller counted it in the operation's record (SPEC §8).
 * The hub queries the record; applying the same count twice is harmless.
 *
 * The hub raises an alarm, and a person must check, in two cases:
 * - The report names no known operation.
 * - The operation has dropped its own unit already, and the unit of another unconfirmed operation at that
 *   cabinet may still hang. One sensor watches all rows.
 */
function noteLateDrop(context: Context, { device, operationId }: DeviceEvent): void {
  const { state, store, controllers } = context
  const operation = operationId === undefined ? undefined : state.operations.find(operationId)
  if (!operation) {
    setAlarm(
      context,
      'unexpected_drop',
      deviceSubject(device),
      true,
      operationId ?? 'a unit fell without a command',
    )
    return
  }
  const mayHang = state.operations
    .unknown()
    .some((other) => other.device === device && other.id !== operation.id)
  if (operation.state === 'done' && mayHang) {
    const detail = `after ${operation.id}, while another unit may hang`
    setAlarm(context, 'unexpected_drop', deviceSubject(device), true, detail)
    return
  }
  state.operations.change(operation.id, { recheck: true })
  store.afterCommit(() => void controllers.query(device, operation.id))
}

/**
 * Applies one entry of the cloud's stream, in the inbox's transaction. Throws `ApplyError` if the entry can
 * never be applied.
 */
export function applyCloudEntry(context: Context, body: unknown, leaveOut: LeaveOut): void {
  const parsed = CloudEntry.safeParse(body)
  if (!parsed.success) throw new ApplyError('invalid', parsed.error.message)
  const entry = parsed.data
  switch (entry.kind) {
    case 'order.queued':
      acceptQueued(context, entry.order)
      return
    case 'order.cancel':
      withdrawOrder(context, entry.order_id)
      return
    case 'order.reduce':
      reduceOrder(context, entry.order_id, entry.lines)
      return
    case 'stock.count':
      applyCount(context, entry.count)
      return
    case 'planogram':
      applyPlanogram(context, entry.facings, entry.products)
      return
    case 'config':
      applyConfig(context, entry.config)
      return
    case 'desired':
      takeDesired(context, entry.desired)
      return
    case 'snapshot':
      // The snapshot replaces all entries before it.
      context.state.deadLetters.remove()
      applySnapshot(context, entry, leaveOut)
      endRecovery(context)
      if (entry.desired) takeDesired(context, entry.desired)
      return
  }
}

/** Stores a version of the desired state before the entry is acknowledged. Reports the hub's own hardware if the cloud has none. */
function takeDesired({ desired, description, ledger }: Context, sent: DesiredState): void {
  desired?.offer(sent, description)
  if (sent.hardware === null && description) ledger.report({ kind: 'hardware', hardware: description })
}

/**
 * An order queued for an earlier store of this hub may already have been dispensed by that store. It is
 * accepted as recovering, and nothing more is dispensed.
 */
function acceptQueued(context: Context, order: QueuedOrder): void {
  if (isOwn(context, order)) acceptOrder(context, order, 'queued')
  else acceptRecovering(context, order, { bins: [], dropped: new Map() })
}
