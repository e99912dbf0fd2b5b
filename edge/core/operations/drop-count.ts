import { deviceSubject, rowSubject } from '../../../protocol/model/subject.ts'
import type { OperationRow } from '../../journal/tables.ts'
import { hangingMs } from '../bins/bin.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../layout.ts'
import { setAlarm } from '../ledger.ts'
import { bookedFacing } from '../stock.ts'

/** The outcome of a dispense with a count that the hub does not believe. */
export const TOO_MANY_DROPS = 'too_many_drops'

/**
 * Why the hub does not believe a controller's count of falls; undefined if it does. A drop sensor that flickers counts
 * falls that did not happen. A count above one is doubted if it exceeds the known stock of the row, or if the light
 * barrier shows the bin empty. It then proves not even the first fall. The bin's report may come after the count, over
 * another line. The count is then believed, unless the barrier may show another unit.
 */
export function doubtOfDrops(
  context: Context,
  operation: OperationRow,
  { drops }: { drops: number },
): string | undefined {
  const units = drops - operation.drops
  if (operation.action !== 'dispense' || units <= 1) return undefined
  const place = placeOf(operation)
  if (place === undefined) return undefined
  const row = rowSubject(place)
  // A technician tests rows before anybody has counted them.
  const most =
    operation.command_id === null
      ? Math.max(0, bookedFacing(context, operation)?.quantity ?? 0)
      : context.layout.depthOf(place)
  if (units > most) return `${units} units seen to fall from ${row}, which held at most ${most}`
  const isEmpty = operation.bin !== null && context.devices.bin(operation.bin).occupied === false
  const isLate = operation.why === TOO_MANY_DROPS && !mayShow(context, operation)
  return isEmpty || isLate
    ? `${units} units seen to fall from ${row}, and bin ${operation.bin} is empty`
    : undefined
}

/** Whether the light barrier of a bin can only show the units of this dispense, the last one into the bin. */
function mayShow(context: Context, operation: OperationRow): boolean {
  const { number, bin } = operation
  const isLast = context.state.operations
    .all()
    .every((other) => other.action !== 'dispense' || other.bin !== bin || other.number <= number)
  return isLast && hangingMs(context, operation) > 0
}

/** The dispenses into a bin with a count that is not believed, and that the bin's light barrier may still confirm. */
export const doubtedInto = (context: Context, bin: number): OperationRow[] =>
  context.state.operations
    .unknown()
    .filter((each) => each.bin === bin && each.why === TOO_MANY_DROPS && mayShow(context, each))

/** Clears the alarm of a count that is believed after all. */
export function endDoubt(context: Context, { device, id, why }: OperationRow): void {
  const subject = deviceSubject(device)
  const alarm = context.state.alarms.find({ code: 'unexpected_drop', subject })
  if (why === TOO_MANY_DROPS && alarm?.detail.endsWith(id))
    setAlarm(context, 'unexpected_drop', subject, false, '')
}

/** Raises the alarm of a count that is not believed. An unknown or settled outcome has reported it. */
export function reportDoubt(context: Context, { device, state, id }: OperationRow, doubt: string): void {
  if (state === 'unknown' || state === 'settled') return
  setAlarm(context, 'unexpected_drop', deviceSubject(device), true, `${doubt}: ${id}`)
}
