import type { State, UnitKey, UnitRow } from '../journal/state.ts'
import type { OrderLine } from '../journal/tables.ts'

/**
 * The customer pays for the `wanted` units of a line. Further units are refunded, and stay on the shelf if their dispensing
 * has not started. A unit that comes back from a dispense that moved nothing has not started.
 */

/** Stores how many units of a line are wanted, and cancels its waiting units beyond that. */
export function limitLine(state: State, orderId: string, lineId: number, wanted: number): void {
  state.orders.want(orderId, lineId, wanted)
  cancelSurplus(state, orderId, lineId)
}

/** A unit waits again for a row that dispenses it, if it is still wanted. */
export function waitAgain(state: State, unit: UnitKey): void {
  state.orders.setUnit(unit, 'waiting', null)
  cancelSurplus(state, unit.order_id, unit.line_id)
}

function cancelSurplus({ orders }: State, orderId: string, lineId: number): void {
  const wanted = orders.find(orderId)?.lines.find(({ line_id }) => line_id === lineId)?.wanted ?? Infinity
  const left = orders.units(orderId).filter((unit) => unit.line_id === lineId && unit.state !== 'short')
  const surplus = left
    .toReversed()
    .filter((unit) => unit.state === 'waiting')
    .slice(0, Math.max(0, left.length - wanted))
  for (const unit of surplus) orders.setUnit(unit, 'short', null)
}

/** Whether the line has fewer units than wanted. Unconfirmed units do not count. */
export function lacksUnits({ units, wanted = Infinity }: OrderLine): boolean {
  const mayReach = (state: UnitRow['state']): boolean => state !== 'doubtful' && state !== 'short'
  return units.filter(({ state }) => mayReach(state)).length < wanted
}
