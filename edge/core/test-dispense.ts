import { fridgeDoor, fridgeSides } from '../../protocol/model/hardware.ts'
import type { CommandReason } from '../../protocol/mqtt/command.ts'
import { isAvailable, isPrepared, viewBins } from './bins/bin.ts'
import { isUsable, startUpGraceMs, type Context } from './context.ts'
import { cabinetDevice, isAt } from './layout.ts'
import type { TestDispense } from './local-command.ts'
import { intend } from './operations/intend.ts'

/** Begins to turn the row. Returns why it must not turn. */
export function beginTestDispense(
  context: Context,
  id: string,
  { location, bin: number, onto = false }: TestDispense,
): CommandReason | undefined {
  const { state, layout } = context
  const bin = viewBins(context).find((view) => view.number === number)
  if (!bin || layout.depthOf(location) === 0) return 'not_found'
  const device = cabinetDevice(location.cabinet)
  if (!bin.up || !isUsable(context, device)) return 'offline'
  const { shelf, row } = location
  const isHindered =
    !isAvailable({ ...bin, enabled: true, ...(onto && { occupied: false }) }) ||
    !isPrepared(bin) ||
    state.orders.unfinished().length > 0 ||
    startUpGraceMs(context) > 0 ||
    isAjar(context, location.cabinet) ||
    state.operations.open().some((operation) => operation.device === device) ||
    // Of a unit of which nobody knows whether it hangs, a turn would make two.
    state.operations.unknown().some((operation) => isAt(operation, location))
  if (isHindered) return 'interlock'
  const productId = state.stock.facings.find(location)?.product_id ?? null
  intend(context, {
    device,
    action: 'dispense',
    dispense: { shelf, row, bin: number, productId },
    commandId: id,
  })
  return undefined
}

/** A fridge's door before the cabinet is open, or could be opened now. */
const isAjar = ({ layout, doors }: Context, cabinet: number): boolean =>
  layout.fridgeDoors.some((behind) =>
    fridgeSides.some((side) => {
      const door = fridgeDoor(behind.fridge, side)
      return behind[side] === cabinet && (doors.mayBeOpen(door) || doors.status(door) === 'unlocked')
    }),
  )
