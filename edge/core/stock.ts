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

/** Books a change of a facing's stock, by default of now; returns the fields that all its reports share. */
function change(
  { state, cloud }: Context,
  facing: FacingRow,
  { at = cloud.now(), ...change }: Pick<StockChange, 'kind' | 'delta' | 'causeId'> & { at?: number },
) {
  const { delta } = change
  const location = locationOf(facing)
  const after = state.stock.change({ ...change, location, at })
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
 * since then. The stock of a row that was counted later stays.
 */
export function applyCount(context: Context, count: StockCount): void {
  const { state } = context
  const { product_id, location, counted_at } = count
  const facings = countedFacings(context, count)
  if (state.stock.isCounted(count.count_id)) return confirmCount(context, count, facings)
  if (facings.length === 0)
    throw new ApplyError(
      'unknown_product',
      `no facing that was counted holds product ${product_id}: the count cannot be applied`,
    )
  const newer = facings.filter((facing) => state.stock.isCountedAfter(facing, counted_at))
  confirmCount(context, count, newer)
  // The stock without the newer counts.
  const held = facings.map((facing) => ({
    ...facing,
    quantity: facing.quantity - state.stock.countedSince(facing, counted_at),
    capacity: context.layout.depthOf(facing),
  }))
  const before = sumOf(held)
  const moved = state.stock.movedSince(product_id, counted_at, location)
  const target = Math.max(0, count.quantity + moved)
  const isNewer = (place: Location): boolean =>
    newer.some((facing) => locationKey(facing) === locationKey(place))
  const isOfCount = (operation: OperationRow): boolean =>
    location === null ? operation.product_id === product_id : isAt(operation, location)
  const unknown = unknownUntil(context, counted_at).filter(
    (operation) => isOfCount(operation) && !newer.some((facing) => isAt(operation, facing)),
  )
  settleByCount(context, unknown, before - target)
  for (const { facing, delta } of spread(held, target - before))
    if (!isNewer(facing)) bookCount(context, facing, { delta, count_id: count.count_id, at: counted_at })
  for (const facing of facings) if (!isNewer(facing)) endUnconfirmedOf(context, facing, counted_at)
}

/** The dispenses of unknown outcome that a count of this time can resolve. */
const unknownUntil = ({ state }: Context, at: number): OperationRow[] =>
  state.operations.unknown().filter(({ action, intent_at }) => action === 'dispense' && intent_at <= at)

/** The count is booked already: a cloud that sends it again has lost the report. */
function confirmCount({ ledger }: Context, { count_id }: StockCount, facings: readonly FacingRow[]): void {
  for (const facing of facings) {
    const { product_id, quantity } = facing
    const location = locationOf(facing)
    ledger.report({ kind: 'stock.counted', product_id, location, delta: 0, quantity, count_id })
  }
}

/** A count of one facing by a person at the hub, at `at` in cloud time. `units` includes the changes since then. */
export function countFacing(
  context: Context,
  facing: FacingRow,
  units: number,
  { id: count_id = uuidv7(context.runtime), at }: { id?: string | undefined; at: number },
): void {
  const unknown = unknownUntil(context, at).filter((operation) => isAt(operation, facing))
  settleByCount(context, unknown, facing.quantity - units)
  bookCount(context, facing, { delta: units - facing.quantity, count_id, at })
  endUnconfirmedOf(context, facing, at)
}

/** A person checked the shelf: an earlier unexplained drop is accounted for. The row may be tried again if it has not failed since. */
function endUnconfirmedOf(context: Context, location: Location, at: number): void {
  const { state } = context
  const subject = cabinetSubject(location.cabinet)
  if ((state.rowFaults.find(location)?.failed_at ?? 0) <= at) clearRow(context, location)
  if ((state.alarms.find({ code: 'unexpected_drop', subject })?.raised_at ?? 0) <= at)
    setAlarm(context, 'unexpected_drop', subject, false, '')
}

/** Books units that a person added at the hub, at `at` in cloud time. */
export function restockFacing(
  context: Context,
  facing: FacingRow,
  units: number,
  { id: restock_id = uuidv7(context.runtime), at }: { id?: string | undefined; at: number },
): void {
  const changed = change(context, facing, { kind: 'restocked', delta: units, causeId: restock_id, at })
  context.ledger.report({ kind: 'stock.restocked', ...changed, restock_id })
}

/** `kind`: `moved` if the planogram changes the stock without a count. */
function bookCount(
  context: Context,
  facing: FacingRow,
  { kind = 'counted', delta, count_id, at }: Counted,
): void {
  const booked = { kind, delta, causeId: count_id, at: Math.min(at, context.cloud.now()) }
  context.ledger.report({ kind: 'stock.counted', ...change(context, facing, booked), count_id })
}

interface Counted {
  kind?: 'counted' | 'moved'
  delta: number
  count_id: string
  /** When a person counted, in cloud time. */
  at: number
}

/** The planogram moves units to a facing, or away from it. */
function moveUnits(context: Context, facing: FacingRow, delta: number): void {
  const { cloud, runtime } = context
  bookCount(context, facing, { kind: 'moved', delta, count_id: uuidv7(runtime), at: cloud.now() })
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
    if (old.quantity !== 0) moveUnits(context, old, -old.quantity)
    homeless.set(old.product_id, (homeless.get(old.product_id) ?? 0) + old.quantity)
    state.stock.facings.delete(locationOf(old))
  }
  for (const { location, product_id, primary } of facings)
    state.stock.putFacing(location, product_id, primary)
  for (const [productId, units] of homeless) {
    const home = state.stock.ofProduct(productId)[0]
    if (home && units !== 0) moveUnits(context, home, units)
  }
}
