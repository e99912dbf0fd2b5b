import { deviceSubject, rowSubject } from '../../../protocol/model/subject.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context } from '../context.ts'
import { placeOf } from '../layout.ts'
import { setAlarm } from '../ledger.ts'
import { bookedFacing } from '../stock.ts'

/** The outcome of a dispense with a count that the hub does not believe. */
export const TOO_MANY_DROPS = 'too_many_drops'

/**
 * Why the hub does not believe a controller's count of falls; undefined if it does. A drop sensor that flickers counts
 * falls that did not happen. A count above one is doubted if it exceeds the known stock of the row, or if the light
 * barrier shows the bin empty. It then proves not even the first fall.
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
  return isEmpty ? `${units} units seen to fall from ${row}, and bin ${operation.bin} is empty` : undefined
}

/** Raises the alarm of a count that is not believed. An unknown or settled outcome has reported it. */
export function reportDoubt(context: Context, { device, state, id }: OperationRow, doubt: string): void {
  if (state === 'unknown' || state === 'settled') return
  setAlarm(context, 'unexpected_drop', deviceSubject(device), true, `${doubt}: ${id}`)
}
