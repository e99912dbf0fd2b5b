import type { DeviceEvent } from '../hardware/controllers.ts'
import { setAlarm } from './ledger.ts'
import type { Context } from './context.ts'
import { numberOf } from './layout.ts'
import { settleMotionBySensor } from './bins/motions.ts'

/**
 * Takes in what a device says of itself. One that belongs on another line is not heard: lines are mixed up, or the board
 * is not this hub's. Its bins stay out of use then, as those that should be on the line say nothing.
 */
export function applyDeviceEvent(context: Context, controller: string, event: DeviceEvent): void {
  if (context.layout.controllerOf(event.device) !== controller) {
    setAlarm(context, 'wrong_controller', controller, true, `${event.device} is on its line`)
    return
  }
  context.devices.note(event)
  settleMotionBySensor(context, event.device)
  if (event.drop !== undefined) noteLateDrop(context, event)
  if (event.celsius !== undefined) noteTemperature(context, event.device, event.celsius)
}

/**
 * A unit fell after its operation's result. The controller has counted it in the operation's record (SPEC §8): it is
 * asked for the record, whose count may be heard twice without harm. Whose it was may be unknown: then only people know.
 * So it is where the operation has dropped its own already, and of another one at that cabinet nobody knows whether its
 * unit still hangs: one sensor watches all rows.
 */
function noteLateDrop(context: Context, { device, operationId }: DeviceEvent): void {
  const { journal, store, controllers } = context
  const operation = operationId === undefined ? undefined : journal.operations.find(operationId)
  if (!operation) {
    setAlarm(context, 'unexpected_drop', device, true, operationId ?? 'a unit fell by itself')
    return
  }
  const mayHang = journal.operations
    .unknown()
    .some((other) => other.device === device && other.id !== operation.id)
  if (operation.state === 'done' && mayHang) {
    setAlarm(context, 'unexpected_drop', device, true, `after ${operation.id}, while another unit may hang`)
    return
  }
  journal.operations.markRecheck(operation.id, true)
  store.afterCommit(() => void controllers.query(device, operation.id))
}

function noteTemperature(context: Context, device: string, celsius: number): void {
  const { devices, runtime, settings, outbox, cloud } = context
  const number = numberOf('fridge', device)
  if (number === undefined) return
  const fridge = devices.fridge(number)
  const now = runtime.clock.monotonic()
  if (fridge.reportedAt !== undefined && now - fridge.reportedAt < settings.temperatureMs) return
  fridge.reportedAt = now
  outbox.append('telemetry', { kind: 'temperature', at: cloud.now(), fridge_number: number, celsius })
}
