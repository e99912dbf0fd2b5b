import { locationKey } from '../../protocol/model/location.ts'
import { isBusy, viewBins } from './bins/bin.ts'
import { binDevice } from './layout.ts'
import type { Context } from './context.ts'
import { isTaking, isUpdating } from './firmware-step.ts'

/**
 * Why this hub must not begin a new journal now, as a sentence; undefined if it may. A hub that moves to another cell begins one,
 * which contains none of these facts.
 */
export function reasonToStay(context: Context): string | undefined {
  for (const reason of [reasonToWait, maintenance, motions, bins, rows, heldByPerson, fridges, technician]) {
    const found = reason(context)
    if (found !== undefined) return found
  }
  return undefined
}

type Reason = (context: Context) => string | undefined

/** A motion of a controller that does not answer may never end: the next description or release may repair it. */
export const reasonToWait: Reason = ({ state, devices, layout, cycling, firmware }) => {
  const [order] = state.orders.unfinished()
  if (order) return `order ${order.order_number} is in progress`
  const isMoving = state.operations.open().some(({ controller }) => devices.isUp(controller))
  const isCycling = [...cycling.values()].some(({ bin }) =>
    devices.isUp(layout.controllerOf(binDevice(bin)) ?? ''),
  )
  if (isMoving || isCycling) return 'something moves'
  return [...firmware.values()].some(isTaking) ? 'the firmware of a controller is being updated' : undefined
}

const maintenance: Reason = ({ state }) => {
  const config = state.facts.config()
  return !config || config.accepting_orders ? 'the hub takes orders: maintenance must be on' : undefined
}

const motions: Reason = ({ state }) => {
  const [unknown] = state.operations.unknown()
  if (unknown) return `the outcome of a motion of ${unknown.device} is unknown: a person must settle it`
  const isMoving = state.operations.open().length > 0 || state.commands.open().length > 0
  return isMoving ? 'something moves' : undefined
}

const bins: Reason = (context) => {
  const bin = viewBins(context).find(
    (each) =>
      each.orderId !== null ||
      !each.up ||
      each.fault !== null ||
      isBusy(each) ||
      each.door !== 'closed' ||
      each.occupied !== false,
  )
  return bin && `bin ${bin.number} is not known to be empty, closed and without fault`
}

const rows: Reason = ({ state }) => {
  const [row] = state.rowFaults.all()
  return row && `row ${locationKey(row)} is blocked: a person must check and unblock it`
}

const heldByPerson: Reason = ({ state }) => {
  const held = state.facts.get('held')
  return held.orders || held.bins.length > 0
    ? 'a person at the hub has taken a part of it out of service'
    : undefined
}

const fridges: Reason = ({ layout, state, devices }) => {
  const fridge = layout.fridges.find(({ number }) => {
    const row = state.fridges.find(number)
    const { provenAt, isUnproven } = devices.fridge(number)
    const isCold = row?.warm_since === null && row.shutoff_at === null
    return !isCold || isUnproven || provenAt === undefined
  })
  return fridge && `fridge ${fridge.number} is not proven to be cold`
}

const technician: Reason = ({ state, firmware }) => {
  if (state.acceptances.open()) return 'an acceptance of the hub is not ended'
  return [...firmware.values()].some(isUpdating) ? 'the firmware of a controller is being updated' : undefined
}
