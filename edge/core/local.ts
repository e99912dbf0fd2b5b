import type { Location } from '../../protocol/model/location.ts'
import type { Context } from './context.ts'
import type { FacingStock, LocalOutcome, LocalRefusal, OrderSummary, UnknownOperation } from './hub-core.ts'
import { settleOperation } from './ledger.ts'
import { progressOf } from './orders/orders.ts'
import { takeOver } from './recovery/strangers.ts'
import { bookDrop, countFacing, restockFacing } from './stock.ts'
import { isAt, placeOf } from './layout.ts'

const no = (reason: LocalRefusal): LocalOutcome => ({ ok: false, reason })
const MAX_UNITS = 1000

/** A person says whether an operation of unknown outcome happened. */
export function settleByPerson(context: Context, operationId: string, happened: boolean): LocalOutcome {
  const { journal, cloud } = context
  const operation = journal.operations.find(operationId)
  if (!operation) return no('not_found')
  if (operation.state !== 'unknown') return no('not_unknown')
  const isTaken = context.handle(() => {
    const dropped = happened && operation.action === 'dispense'
    const drops = dropped ? 1 : operation.drops
    const end = { ...operation, state: 'settled', drops, ended_at: cloud.now() } as const
    settleOperation(context, operation, { end, by: 'person', happened })
    // Its money has gone back, or will: it belongs to no order any more.
    if (dropped) bookDrop(context, operation, 1, 0)
  })
  return isTaken ? { ok: true } : no('unavailable')
}

export function restockByPerson(context: Context, location: Location, units: number): LocalOutcome {
  const facing = context.journal.stock.facing(location)
  if (!facing) return no('not_found')
  if (!Number.isInteger(units) || units < 1 || units > MAX_UNITS) return no('invalid')
  return context.handle(() => restockFacing(context, facing, units)) ? { ok: true } : no('unavailable')
}

export function countByPerson(context: Context, location: Location, units: number): LocalOutcome {
  const facing = context.journal.stock.facing(location)
  if (!facing) return no('not_found')
  if (!Number.isInteger(units) || units < 0 || units > MAX_UNITS) return no('invalid')
  return context.handle(() => countFacing(context, facing, units)) ? { ok: true } : no('unavailable')
}

/** A person says that the board on this line is a spare part for this hub. */
export function takeOverByPerson(context: Context, controller: string): LocalOutcome {
  const stranger = context.strangers.get(controller)
  if (!stranger?.isForeign) return no('not_found')
  return takeOver(context, controller, stranger) ? { ok: true } : no('invalid')
}

export const foreignControllers = ({ strangers }: Context): string[] =>
  [...strangers].flatMap(([controller, { isForeign }]) => (isForeign ? [controller] : []))

export function unknownOperations({ journal }: Context): UnknownOperation[] {
  return journal.operations.unknown().map((operation) => ({
    operation_id: operation.id,
    device: operation.device,
    action: operation.action,
    location: placeOf(operation) ?? null,
    product_id: operation.product_id,
    order_id: operation.order_id,
    order_number: numberOf(journal, operation.order_id),
    line_id: operation.line_id,
    at: operation.intent_at,
  }))
}

const numberOf = ({ orders }: Context['journal'], orderId: string | null): number | null =>
  (orderId === null ? undefined : orders.find(orderId)?.order_number) ?? null

const SHOWN_ORDERS = 50

/** Unfinished orders and the last finished ones, newest first. */
export function orderSummaries({ journal }: Context): OrderSummary[] {
  return journal.orders.newest(SHOWN_ORDERS).map((order) => {
    const progress = new Map(progressOf(journal, order.id).map((line) => [line.line_id, line]))
    return {
      order_id: order.id,
      order_number: order.order_number,
      phase: order.phase,
      bins: JSON.parse(order.bins) as number[],
      lines: journal.orders.lines(order.id).map(({ line_id, product_id, quantity }) => ({
        line_id,
        product_id,
        quantity,
        dropped: progress.get(line_id)?.dropped ?? 0,
        doubtful: progress.get(line_id)?.doubtful ?? 0,
      })),
    }
  })
}

export function stockOf({ journal }: Context): FacingStock[] {
  const unknown = journal.operations.unknown()
  return journal.stock.facings().map(({ product_id, cabinet, shelf, row, is_primary, quantity }) => ({
    product_id,
    location: { cabinet, shelf, row },
    primary: is_primary === 1,
    quantity,
    blocked: unknown.some((operation) => isAt(operation, { cabinet, shelf, row })),
  }))
}
