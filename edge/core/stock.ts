import { uuidv7 } from '../../protocol/model/ids.ts'
import { locationKey, type Location } from '../../protocol/model/location.ts'
import { cabinetSubject, deviceSubject, rowSubject } from '../../protocol/model/subject.ts'
import type { Facing, NamedProduct, StockCount } from '../../protocol/mqtt/cloud-entries.ts'
import { ApplyError } from '../journal/inbox.ts'
import type { StockChange } from '../journal/stock.ts'
import type { FacingRow, OperationRow } from '../journal/tables.ts'
import { setAlarm, settleOperation } from './ledger.ts'
import type { Context } from './context.ts'
import { clearRow } from './blocked-rows.ts'
import { isAt, placeOf } from './layout.ts'

const locationOf = ({ cabinet, shelf, row }: Location): Location => ({ cabinet, shelf, row })

/** Books a change of a facing's stock; returns the fields that all its reports share. */
function change(
  { state, cloud }: Context,
  facing: FacingRow,
  change: Pick<StockChange, 'kind' | 'delta' | 'causeId'>,
) {
  const { delta } = change
  const location = locationOf(facing)
  const after = state.stock.change({ ...change, location, at: cloud.now() })
  return { product_id: facing.product_id, location, delta, quantity: after?.quantity ?? 0 }
}

const productOf = ({ state }: Context, operation: OperationRow): number | undefined => {
  const location = placeOf(operation)
  return operation.product_id ?? (location && state.stock.facings.find(location)?.product_id)
}

/** The drops of an operation reduce the stock of this facing; undefined if its product has none. */
export function bookedFacing(context: Context, operation: OperationRow): FacingRow | undefined {
  const { stock } = context.state
  const location = placeOf(operation)
  const there = location && stock.facings.find(location)
  const product = productOf(context, operation)
  if (there?.product_id === product) return there
  return product === undefined ? undefined : stock.ofProduct(product)[0]
}

/**
 * Books and reports units that fell in an operation. `delivered` of them belong to its order's line. Others belong to no
 * order: a double drop, or a refunded unit. No stock becomes negative: if more units fell than the row held by the books,
 * an alarm asks a person to count.
 */
export function bookDrop(context: Context, operation: OperationRow, fallen: number, delivered: 0 | 1): void {
  const { ledger } = context
  const location = placeOf(operation)
  const product = productOf(context, operation)
  if (location === undefined || product === undefined) {
    // A technician tested a row without a product in the planogram: there is no stock to book.
    if (operation.command_id !== null) return
    // An imported drop at a row without a product: the product is unknown.
    setAlarm(
      context,
      'unexpected_drop',
      deviceSubject(operation.device),
      true,
      `${fallen} in ${operation.id}`,
    )
    return
  }
  const causeId = operation.drops === 0 ? operation.id : laterDropId(operation.id, operation.drops + fallen)
  const facing = bookedFacing(context, operation)
  const held = Math.max(0, facing?.quantity ?? fallen)
  const units = Math.min(fallen, held)
  const drop = { kind: 'dropped', delta: -units, causeId } as const
  // A technician tests rows before anybody has counted them.
  if (units < fallen && operation.command_id === null) {
    const detail = `${fallen} fell from ${rowSubject(location)}, which held ${held}: ${operation.id}`
    setAlarm(context, 'unexpected_drop', deviceSubject(operation.device), true, detail)
  }
  ledger.report({
    kind: 'stock.dropped',
    // The row has no units. Or the planogram moved the product with its units, or wrote them off with this unit.
    ...(facing && units > 0
      ? change(context, facing, drop)
      : { product_id: product, location, delta: 0, quantity: facing?.quantity ?? 0 }),
    operation_id: causeId,
    order_id: operation.order_id,
    line_id: operation.line_id,
    delivered,
    bin: operation.bin,
  })
}

/**
 * The id under which a further unit of an operation is booked. Each cause is booked once, so a later drop of
 * a booked operation needs its own id. It is derived from the operation's id (a UUIDv8), so that every
 * process computes the same id.
 */
export function laterDropId(operationId: string, drops: number): string {
  const tail = (drops & 0xff).toString(16).padStart(2, '0')
  return `${operationId.slice(0, 14)}8${operationId.slice(15, -2)}${tail}`
}

/** The facings of a count: all facings of its product, or the counted row. Empty if the product is no longer there. */
export const countedFacings = ({ state }: Context, { product_id, location }: StockCount): FacingRow[] =>
  state.stock
    .ofProduct(product_id)
    .filter((facing) => location === null || locationKey(facing) === locationKey(location))

/**
 * Applies a count of a product, in one row or all its rows: the stock becomes the count plus the changes
 * since then.
 */
export function applyCount(context: Context, count: StockCount): void {
  const { state } = context
  const { product_id, location } = count
  const facings = countedFacings(context, count)
  if (state.stock.isCounted(count.count_id)) return confirmCount(context, count, facings)
  if (facings.length === 0)
    throw new ApplyError(
      'unknown_product',
      `no facing that was counted holds product ${product_id}: the count cannot be applied`,
    )
  const before = sumOf(facings)
  const moved = state.stock.movedSince(product_id, count.counted_at, location)
  const target = Math.max(0, count.quantity + moved)
  const mine = (operation: OperationRow): boolean =>
    operation.action === 'dispense' &&
    (location === null ? operation.product_id === product_id : isAt(operation, location)) &&
    operation.intent_at <= count.counted_at
  settleByCount(context, state.operations.unknown().filter(mine), before - target)
  const held = facings.map((facing) => ({ ...facing, capacity: context.layout.depthOf(facing) }))
  for (const { facing, delta } of spread(held, target - before))
    bookCount(context, facing, delta, count.count_id)
  for (const facing of facings) endUnconfirmedOf(context, facing)
}

/** The count is booked already: a cloud that sends it again has lost the report. */
function confirmCount({ ledger }: Context, { count_id }: StockCount, facings: readonly FacingRow[]): void {
  for (const facing of facings) {
    const { product_id, quantity } = facing
    const location = locationOf(facing)
    ledger.report({ kind: 'stock.counted', product_id, location, delta: 0, quantity, count_id })
  }
}

/** A count of one facing by a person at the hub. */
export function countFacing(
  context: Context,
  facing: FacingRow,
  units: number,
  id = uuidv7(context.runtime),
): void {
  const unknown = context.state.operations.unknown().filter((operation) => isAt(operation, facing))
  settleByCount(context, unknown, facing.quantity - units)
  bookCount(context, facing, units - facing.quantity, id)
  endUnconfirmedOf(context, facing)
}

/** A person has checked the shelf: an unexplained drop there is accounted for, and the row may be tried again. */
function endUnconfirmedOf(context: Context, location: Location): void {
  const { cabinet } = location
  clearRow(context, location)
  setAlarm(context, 'unexpected_drop', cabinetSubject(cabinet), false, '')
}

/** Books units that a person added at the hub. */
export function restockFacing(
  context: Context,
  facing: FacingRow,
  units: number,
  restock_id = uuidv7(context.runtime),
): void {
  const changed = change(context, facing, { kind: 'restocked', delta: units, causeId: restock_id })
  context.ledger.report({ kind: 'stock.restocked', ...changed, restock_id })
}

function bookCount(context: Context, facing: FacingRow, delta: number, count_id: string): void {
  const changed = change(context, facing, { kind: 'counted', delta, causeId: count_id })
  context.ledger.report({ kind: 'stock.counted', ...changed, count_id })
}

/**
 * A count shows how many unconfirmed units left the shelf: that many of the oldest operations happened. The
 * count's delta books them.
 */
function settleByCount(context: Context, unknown: readonly OperationRow[], missing: number): void {
  for (const [index, operation] of unknown.entries()) {
    const happened = index < missing
    const drops = happened ? Math.max(1, operation.drops) : operation.drops
    const end = { ...operation, state: 'settled', drops, ended_at: context.cloud.now() } as const
    settleOperation(context, operation, { end, by: 'count', happened })
  }
}

const sumOf = (facings: readonly FacingRow[]): number =>
  facings.reduce((sum, facing) => sum + facing.quantity, 0)

type Held = FacingRow & { capacity: number }

/**
 * Spreads a change of a product over its facings, the primary facing first. No facing exceeds its capacity
 * while others have room. None becomes negative while others have units.
 */
export function spread(facings: readonly Held[], delta: number): { facing: Held; delta: number }[] {
  const [first] = facings
  if (first === undefined) return []
  const shares = new Map<Held, number>([[first, 0]])
  let left = delta
  for (const facing of facings) {
    const { quantity, capacity } = facing
    const share =
      left > 0 ? Math.min(left, Math.max(0, capacity - quantity)) : Math.max(left, Math.min(0, -quantity))
    if (share === 0) continue
    left -= share
    shares.set(facing, share)
  }
  // The change exceeds all capacities, or all units: a person must find out where the units are.
  shares.set(first, shares.get(first)! + left)
  return [...shares].map(([facing, share]) => ({ facing, delta: share }))
}

/**
 * Applies the planogram. If a product lost a facing, its units move to its first remaining facing. If it has
 * none, they are written off.
 */
export function applyPlanogram(
  context: Context,
  facings: readonly Facing[],
  products: readonly NamedProduct[] | undefined,
): void {
  const { state } = context
  if (products) state.stock.setProducts(products)
  const wanted = (old: FacingRow): boolean =>
    facings.some(
      ({ product_id, location }) =>
        product_id === old.product_id && locationKey(location) === locationKey(old),
    )
  const homeless = new Map<number, number>()
  for (const old of state.stock.facings.all()) {
    if (wanted(old)) continue
    if (old.quantity !== 0) bookCount(context, old, -old.quantity, uuidv7(context.runtime))
    homeless.set(old.product_id, (homeless.get(old.product_id) ?? 0) + old.quantity)
    state.stock.facings.delete(locationOf(old))
  }
  for (const { location, product_id, primary } of facings)
    state.stock.putFacing(location, product_id, primary)
  for (const [productId, units] of homeless) {
    const home = state.stock.ofProduct(productId)[0]
    if (home && units !== 0) bookCount(context, home, units, uuidv7(context.runtime))
  }
}
