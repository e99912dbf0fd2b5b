import { unitOfRef } from '../../edge/core/operations/intend.ts'
import { orderStatusName } from '../../protocol/model/order-status.ts'
import { operationOf, unitsFallen } from './motion.ts'
import type { Evidence, Violation } from './evidence.ts'

/** Invariants that only an observer during the run can check. Without an observer nothing is violated. */

const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`

/** I9: every order ends within its time, also if its hub is offline. */
export function everyOrderEndsInTime({ watched }: Evidence): Violation[] {
  return (watched?.overstayed ?? []).map(({ order_id, status, forMs }) => ({
    invariant: 'I9',
    text: `order ${order_id} has been ${orderStatusName(status)} for ${seconds(forMs)}`,
  }))
}

/** I10: no row waits behind others for ever. */
export function noRowWaitsForEver({ watched }: Evidence): Violation[] {
  return (watched?.waiting ?? []).map(({ row, forMs }) => ({
    invariant: 'I10',
    text: `${row} has been waiting for ${seconds(forMs)}`,
  }))
}

/** I11: nothing is sold that the hub will not dispense. */
export function nothingBlockedIsSold({ watched }: Evidence): Violation[] {
  return (watched?.soldUnsellable ?? []).map(({ order_id, product_id, forMs }) => ({
    invariant: 'I11',
    text: `order ${order_id} was sold product ${product_id}, of which the hub has dispensed nothing for ${seconds(forMs)}`,
  }))
}

/** I12: a unit that was refunded before picking is not dispensed. */
export function refundedUnitsStay({ watched, world, cloud }: Evidence): Violation[] {
  const operations = [...world.refOfOperation.keys()]
  return (watched?.refundedUnstarted ?? []).flatMap(({ order_id, item_id, wanted, begun }): Violation[] => {
    const uuid = cloud.orders.find(({ id }) => id === order_id)?.uuid
    const fallen = world.motions.flatMap((motion) => {
      const operation = operationOf(motion) ?? ''
      const unit = unitOfRef(world.refOfOperation.get(operation) ?? '')
      const isOfLine = unit?.order_id === uuid && unit?.line_id === item_id
      return isOfLine && unitsFallen(motion) > 0 ? [operations.indexOf(operation)] : []
    })
    const text = `line ${item_id} of order ${order_id} was taken back but for ${wanted} units, and ${fallen.length} fell`
    return fallen.length > wanted && Math.max(...fallen) >= begun ? [{ invariant: 'I12', text }] : []
  })
}
