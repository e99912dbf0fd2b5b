import { fridgeSides } from '../../protocol/model/hardware.ts'
import { locationKey, type Location } from '../../protocol/model/location.ts'
import type { OperationRow } from '../journal/tables.ts'
import type { Context } from './context.ts'
import { shutFridges } from './fridges.ts'
import { placeOf } from './layout.ts'

/** Why a row is blocked. */
export interface Block {
  location: Location
  /** The last fault that the motor's controller reported (serial SPEC §7). */
  why: string
  /**
   * Consecutive dispenses that failed with nothing moved: the row may be retried for a running order.
   * Undefined if the outcome of a dispense is unknown: then the row must not be retried.
   */
  failures: number | undefined
  /** Cloud time of the last failure. */
  failedAt: number
}

/** The reason for a row that the hub's hardware does not have. */
const NO_ROW = 'no_such_row'
/** The reason for a row that a person has blocked. Only a person unblocks it: neither a count nor a drop does. */
export const BY_PERSON = 'blocked_by_person'

export type BlockedRows = ReadonlyMap<string, Block>

/** The last result for each state, with the rows from which it was computed. */
const lastResults = new WeakMap<Context['state'], { inputs: readonly unknown[]; blocks: BlockedRows }>()

/**
 * The rows from which the hub sells nothing, by location. A dispense there has an unknown outcome (I1), or
 * dispenses failed and none has succeeded since. A count or a person ends both. The function returns the same
 * map while nothing changes.
 */
export function blockedRows(context: Pick<Context, 'state' | 'layout'>): BlockedRows {
  const { stock, rowFaults, operations } = context.state
  const inputs = [stock.facings.all(), rowFaults.all(), operations.unknown(), context.layout]
  const last = lastResults.get(context.state)
  if (last?.inputs.every((input, index) => input === inputs[index])) return last.blocks
  const blocks = findBlockedRows(context)
  lastResults.set(context.state, { inputs, blocks })
  return blocks
}

function findBlockedRows({ state, layout }: Pick<Context, 'state' | 'layout'>): BlockedRows {
  const blocks = new Map<string, Block>()
  // The planogram may contain rows that this hub's hardware does not have. They cannot dispense.
  for (const { cabinet, shelf, row } of state.stock.facings.all()) {
    const location = { cabinet, shelf, row }
    if (layout.depthOf(location) > 0) continue
    blocks.set(locationKey(location), { location, why: NO_ROW, failures: undefined, failedAt: 0 })
  }
  for (const { why, failures: failed, failed_at: failedAt, ...location } of state.rowFaults.all()) {
    const failures = why === BY_PERSON ? undefined : failed
    blocks.set(locationKey(location), { location, why, failures, failedAt })
  }
  for (const operation of state.operations.unknown()) {
    const location = placeOf(operation)
    if (!location) continue
    const failedAt = operation.ended_at ?? operation.intent_at
    blocks.set(locationKey(location), {
      location,
      why: operation.why ?? 'unknown',
      failures: undefined,
      failedAt,
    })
  }
  return blocks
}

/** The cabinets behind the doors of these fridges. */
export function cabinetsOf({ layout }: Pick<Context, 'layout'>, fridges: readonly number[]): Set<number> {
  const behind = layout.fridgeDoors.filter(({ fridge }) => fridges.includes(fridge))
  return new Set(behind.flatMap((doors) => fridgeSides.map((side) => doors[side])))
}

/** The cabinets from which nothing is dispensed, and why: their fridge was too warm, or is disabled. */
export function closedCabinets(
  context: Pick<Context, 'layout' | 'state'>,
): ReadonlyMap<number, 'shutoff' | 'disabled'> {
  const disabled = cabinetsOf(context, context.state.facts.config()?.disabled_fridges ?? [])
  const shut = cabinetsOf(context, shutFridges(context))
  return new Map([
    ...[...disabled].map((cabinet) => [cabinet, 'disabled'] as const),
    ...[...shut].map((cabinet) => [cabinet, 'shutoff'] as const),
  ])
}

/** A dispense of a row failed, and provably moved nothing. */
export function noteRowFailed({ state, cloud }: Context, operation: OperationRow, why: string): void {
  const location = placeOf(operation)
  if (!location || isByPerson(state, location)) return
  const failures = (state.rowFaults.find(location)?.failures ?? 0) + 1
  state.rowFaults.put({ ...location, failures, why, failed_at: cloud.now() })
}

/** A unit has fallen from the row, or a person has checked it. */
export function clearRow({ state }: Pick<Context, 'state'>, location: Location): void {
  if (!isByPerson(state, location)) state.rowFaults.delete(location)
}

const isByPerson = ({ rowFaults }: Context['state'], location: Location): boolean =>
  rowFaults.find(location)?.why === BY_PERSON

/** Blocks a row until a person unblocks it. False if the hub does not have the row. */
export function blockRow({ state, layout, cloud }: Context, location: Location): boolean {
  if (layout.depthOf(location) === 0) return false
  state.rowFaults.put({ ...location, failures: 0, why: BY_PERSON, failed_at: cloud.now() })
  return true
}

/**
 * Unblocks a row that a person or failed dispenses have blocked. False if the hub does not have the row. A dispense of
 * unknown outcome still blocks it: a count or the outcome ends that.
 */
export function unblockRow({ state, layout }: Context, location: Location): boolean {
  state.rowFaults.delete(location)
  return layout.depthOf(location) > 0
}
