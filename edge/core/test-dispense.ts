import type { CommandBody } from '../../protocol/model/hub-commands.ts'
import type { CommandReason } from '../../protocol/mqtt/command.ts'
import { isAvailable, isPrepared, viewBins } from './bins/bin.ts'
import { isUsable, startUpGraceMs, type Context } from './context.ts'
import { cabinetsAjar } from './doors/doors.ts'
import { cabinetDevice, isAt } from './layout.ts'
import { intend } from './operations/intend.ts'

/** Starts a test dispense of a row. Returns the reason if it is refused. */
export function beginTestDispense(
  context: Context,
  id: string,
  { location, bin: chosen, onto = false }: CommandBody<'test_dispense'>,
): CommandReason | undefined {
  const { state, layout } = context
  if (layout.depthOf(location) === 0) return 'not_found'
  const device = cabinetDevice(location.cabinet)
  if (!isUsable(context, device)) return 'offline'
  const number = chosen ?? freeBin(context)
  if (number === undefined) return 'interlock'
  const bin = viewBins(context).find((view) => view.number === number)
  if (!bin) return 'not_found'
  if (!bin.up) return 'offline'
  const { shelf, row } = location
  const isHindered =
    !isAvailable({ ...bin, enabled: true, ...(onto && { occupied: false }) }) ||
    !isPrepared(bin) ||
    state.orders.unfinished().length > 0 ||
    startUpGraceMs(context) > 0 ||
    cabinetsAjar(context).has(location.cabinet) ||
    state.operations.open().some((operation) => operation.device === device) ||
    // If a unit may hang in the row, another turn could drop two.
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

/** A bin into which a test may dispense. */
export const freeBin = (context: Context): number | undefined =>
  viewBins(context).find((bin) => isAvailable({ ...bin, enabled: true }) && isPrepared(bin))?.number
