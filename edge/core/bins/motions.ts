import { deviceSubject } from '../../../protocol/model/subject.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context } from '../context.ts'
import type { Door, Lift } from '../devices.ts'
import { numberOf } from '../layout.ts'
import { setAlarm, settleOperation } from '../ledger.ts'
import type { BinAction } from '../step.ts'

/** The final position of each motion. */
export const goals: Record<BinAction, { door: Door } | { lift: Lift }> = {
  open_door: { door: 'open' },
  close_door: { door: 'closed' },
  raise_lift: { lift: 'up' },
  lower_lift: { lift: 'down' },
}

const rowOf = ({ state }: Context, { device }: OperationRow) =>
  state.bins.all().find((row) => row.number === numberOf('bin', device))

/**
 * The door or lift is at its target until its sensors report otherwise. A motion of an earlier connection is
 * older than the sensor values of this connection: a person may have closed the door since.
 */
export function noteMotionSucceeded(context: Context, operation: OperationRow): void {
  const { state, devices } = context
  const number = numberOf('bin', operation.device)
  if (number === undefined || operation.action === 'dispense') return
  if (devices.bin(number).sent === operation.id)
    devices.note({ device: operation.device, ...goals[operation.action] }, true)
  devices.endRest(operation.device)
  const bin = rowOf(context, operation)
  if (!bin) return
  if (operation.action === 'close_door' || operation.action === 'lower_lift')
    state.bins.change(bin.number, { on_trial: false })
  // A part that was already at its target proves nothing.
  if (!operation.moved || bin.fault === null || partOf(bin.fault) !== partOf(operation.action)) return
  state.bins.change(bin.number, { failures: 0, fault: null })
  setAlarm(context, 'bin_fault', deviceSubject(operation.device), false, '')
}

/** The part of a motion, or of a motion's fault. */
export const partOf = (motion: string): 'door' | 'lift' => (motion.includes('door') ? 'door' : 'lift')

/**
 * Counts the failure against the bin. The bin then has a fault until a motion of the same part succeeds. A
 * door that met a hand or a bag is not broken: it only rests, longer each time.
 */
export function noteMotionFailed(context: Context, operation: OperationRow, why: string): void {
  const { state, devices, settings } = context
  devices.rest(operation.device, settings.retryMs, settings.maxRetryMs)
  const bin = rowOf(context, operation)
  if (!bin || why === 'obstructed') return
  const fault = `${operation.action}:${why}`
  // An existing fault is not replaced by a fault of the other part, or by a fault of the hub's repair
  // attempt.
  const isFirst = bin.fault === null
  const isSame = isFirst || partOf(bin.fault!) === partOf(fault)
  if (isSame) state.bins.change(bin.number, { failures: bin.failures + 1, fault: bin.fault ?? fault })
  setAlarm(context, 'bin_fault', deviceSubject(operation.device), true, `${operation.action} ${why}`)
}

/** Resolves motions of unknown outcome by the position of the door or lift, once its sensors report it. */
export function settleMotionBySensor(context: Context, device: string): void {
  const { state, devices, cloud } = context
  const number = numberOf('bin', device)
  if (number === undefined) return
  const bin = devices.bin(number)
  for (const operation of state.operations.unknown()) {
    if (operation.device !== device || operation.action === 'dispense') continue
    const goal = goals[operation.action]
    const stands = 'door' in goal ? bin.door : bin.lift
    if (stands === 'unknown' || stands === 'moving') continue
    const happened = stands === ('door' in goal ? goal.door : goal.lift)
    const end = { ...operation, state: 'settled', ended_at: cloud.now() } as const
    settleOperation(context, operation, { end, by: 'sensor', happened })
  }
}
