import { locationKey, type Location } from '../../../protocol/model/location.ts'
import { unitsOf, type UnitRow } from '../../journal/state.ts'
import {
  NEVER_SENT,
  type OperationRow,
  type OrderPhase,
  type OrderRow,
  type UnitState,
} from '../../journal/tables.ts'
import type { CoreSettings } from '../../../protocol/settings/hub-limits.ts'
import { hangingMs, type BinView } from '../bins/bin.ts'
import { isUsable, startUpGraceMs, type Context } from '../context.ts'
import { cabinetsAjar } from '../doors/doors.ts'
import { cabinetDevice, placeOf } from '../layout.ts'
import { unprovenFridges } from '../fridges.ts'
import { cabinetsOf, closedCabinets, type Block, type BlockedRows } from '../blocked-rows.ts'
import { lacksUnits } from '../wanted-units.ts'

export interface UnitView {
  lineId: number
  unit: number
  state: UnitState
  bin: number | null
  /** The facing that would dispense the unit now; only for waiting units, and for doubtful units of a line that lacks units. */
  choice: FacingChoice | undefined
}

/**
 * An unfinished order, as decisions see it. Times are the hub's best knowledge of cloud time, late rather
 * than early.
 */
export interface OrderView {
  id: string
  phase: OrderPhase
  reservedBin: number | null
  openWhenReady: boolean
  startBy: number
  preparingAt: number
  readyAt: number
  collectingAt: number
  units: readonly UnitView[]
  /** Milliseconds in which an unconfirmed unit of the order may still be seen to fall. */
  settlingMs: number
  /** For a recovering order: every controller that may have operations of it has reported. */
  accounted: boolean
}

interface OrderTimes {
  prepareTimeoutMs: number
  prepareGraceMs: number
  unclaimedTimeoutMs: number
  emptyDebounceMs: number
  lateDropMs: number
}

/** All inputs of decisions about orders. `now`: the hub's best knowledge of cloud time. */
export interface OrderWorld {
  now: number
  /** False until the hub has a snapshot of the cloud; no order starts before. */
  live: boolean
  /** Milliseconds that the hub still waits for controllers that have not connected since its start. */
  startUpGraceMs: number
  /** Unfinished orders in the order of arrival. */
  orders: readonly OrderView[]
  bins: readonly BinView[]
  times: OrderTimes
}

/** Collects all inputs of decisions about orders. */
export function viewOrders(context: Context, bins: readonly BinView[], blocks: BlockedRows): OrderWorld {
  const { state, cloud, settings, layout } = context
  const config = state.facts.config()
  const accounted = layout.cabinets.every((cabinet) => {
    const controller = layout.controllerOf(cabinetDevice(cabinet))
    return controller !== undefined && state.controllers.find(controller)?.reconciled === true
  })
  const now: Now = {
    open: state.operations.open(),
    unknown: state.operations.unknown(),
    blocks,
    accounted,
    products: new Map(),
  }
  return {
    now: cloud.now(),
    live: state.facts.get('live'),
    startUpGraceMs: startUpGraceMs(context),
    bins,
    orders: state.orders.unfinished().map((order) => viewOrder(context, order, now)),
    times: {
      prepareTimeoutMs: config?.prepare_timeout_ms ?? Number.MAX_SAFE_INTEGER,
      prepareGraceMs: settings.prepareGraceMs,
      unclaimedTimeoutMs: config?.unclaimed_timeout_ms ?? Number.MAX_SAFE_INTEGER,
      emptyDebounceMs: settings.emptyDebounceMs,
      lateDropMs: settings.lateDropMs,
    },
  }
}

const choosing: ReadonlySet<OrderPhase> = new Set(['queued', 'preparing'])

/** Data that all order views share. */
interface Now {
  open: readonly OperationRow[]
  unknown: readonly OperationRow[]
  blocks: BlockedRows
  accounted: boolean
  /** By product, filled on demand: its facings, and the choice for a unit without attempts. */
  products: Map<number, { facings: readonly FacingView[]; first: FacingChoice }>
}

/** Units are computed on demand: orders that wait behind others do not need theirs. */
function viewOrder(context: Context, order: OrderRow, now: Now): OrderView {
  const { cloud } = context
  let units: readonly UnitView[] | undefined
  return {
    id: order.id,
    phase: order.phase,
    reservedBin: order.reserved_bin,
    openWhenReady: order.open_when_ready,
    startBy: cloud.due(order.start_by),
    preparingAt: cloud.countedFrom(order.preparing_at ?? 0),
    readyAt: cloud.countedFrom(order.ready_at ?? 0),
    collectingAt: cloud.countedFrom(order.collecting_at ?? 0),
    get units() {
      return (units ??= unitsOf(order).map((unit) => viewUnit(context, order, unit, now)))
    },
    get settlingMs() {
      const mine = now.unknown.filter((operation) => operation.order_id === order.id)
      return Math.max(0, ...mine.map((operation) => hangingMs(context, operation)))
    },
    accounted: now.accounted,
  }
}

function viewUnit(context: Context, order: OrderRow, unit: UnitRow, now: Now): UnitView {
  const line = order.lines.find((each) => each.line_id === unit.line_id)
  let choice: FacingChoice | undefined
  const isWanted = unit.state === 'waiting' || (unit.state === 'doubtful' && line && lacksUnits(line))
  if (isWanted && line && choosing.has(order.phase)) {
    const { facings, first } = viewProduct(context, line.product_id, now)
    const attempts = attemptsOf(context, unit)
    choice = attempts.length === 0 ? first : chooseFacing(facings, attempts, context.settings)
  }
  return { lineId: unit.line_id, unit: unit.unit, state: unit.state, bin: unit.bin, choice }
}

function viewProduct(context: Context, productId: number, now: Now) {
  const known = now.products.get(productId)
  if (known) return known
  const facings = viewFacings(context, productId, now)
  const seen = { facings, first: chooseFacing(facings, [], context.settings) }
  now.products.set(productId, seen)
  return seen
}

function viewFacings(context: Context, productId: number, { open, unknown, blocks }: Now): FacingView[] {
  const isComplete = startUpGraceMs(context) === 0
  const closed = closedCabinets(context)
  const ajar = cabinetsAjar(context)
  const unproven = cabinetsOf(context, unprovenFridges(context))
  return context.state.stock.ofProduct(productId).map((facing) => {
    const device = cabinetDevice(facing.cabinet)
    const block = blocks.get(locationKey(facing))
    return {
      location: { cabinet: facing.cabinet, shelf: facing.shelf, row: facing.row },
      primary: facing.is_primary,
      quantity: facing.quantity,
      blocked: closed.has(facing.cabinet) || (block !== undefined && isFinal(context, block)),
      failing: block !== undefined,
      trialMs: block === undefined ? 0 : trialMs(context, block),
      up:
        isComplete && isUsable(context, device) && !ajar.has(facing.cabinet) && !unproven.has(facing.cabinet),
      busy: open.some((operation) => operation.device === device),
      restMs: Math.max(
        context.devices.restMs(device),
        ...unknown.filter((each) => each.device === device).map((each) => hangingMs(context, each)),
      ),
    }
  })
}

/** The row is not retried, even for a running order. */
const isFinal = ({ settings }: Context, { failures }: Block): boolean =>
  failures === undefined || failures >= settings.rowTries

function trialMs({ settings, cloud }: Context, { failures = 1, failedAt }: Block): number {
  return cloud.countedFrom(failedAt) + settings.rowRetryMs * 2 ** (failures - 1) - cloud.now()
}

const refused = new Set(['busy', 'interlock'])

/** The unit's attempts that provably moved nothing. */
function attemptsOf({ state }: Context, unit: UnitRow): Attempt[] {
  return state.operations.ofUnit(unit).flatMap((operation) => {
    const location = placeOf(operation)
    if (operation.state !== 'nothing' || operation.why === NEVER_SENT || !location) return []
    return { location, kind: refused.has(operation.why ?? '') ? 'refused' : 'nothing' }
  })
}

/** A facing of the wanted product. */
export interface FacingView {
  location: Location
  primary: boolean
  quantity: number
  /**
   * The hub dispenses nothing from it: an outcome there is unknown, it failed too often, or its fridge does
   * not sell.
   */
  blocked: boolean
  /** Its last dispenses failed with nothing moved. It is not for sale, only retried. */
  failing: boolean
  /** For a failing facing: milliseconds until it is retried although another row has the product. */
  trialMs: number
  /**
   * Its cabinet's controller is connected and reconciled with the journal, and no fridge door in front of it
   * may be open.
   */
  up: boolean
  /** Its cabinet is dispensing now: one unit at a time. */
  busy: boolean
  /** Milliseconds that its cabinet must rest after a refusal. */
  restMs: number
}

/** An earlier operation for the same unit that provably moved nothing. */
export interface Attempt {
  location: Location
  /** `refused`: the controller would not start now. `nothing`: the controller tried, and the motor never turned. */
  kind: 'refused' | 'nothing'
}

type FacingChoice =
  | { kind: 'dispense'; location: Location }
  /** Wait: its cabinet is not connected, dispenses another unit, or rests (for `ms`) after a refusal. */
  | { kind: 'wait'; for: 'connection' | 'cabinet' | 'rest'; ms: number | undefined }
  /** No facing can dispense it. */
  | { kind: 'short' }

/**
 * Chooses the facing for one unit. Each facing is tried once. If the product has no other facing, the same
 * facing is tried a second time. Only an attempt that provably moved nothing is repeated.
 */
export function chooseFacing(
  facings: readonly FacingView[],
  attempts: readonly Attempt[],
  { unitRefusals }: Pick<CoreSettings, 'unitRefusals'>,
): FacingChoice {
  const count = (facing: FacingView, kind: Attempt['kind']): number =>
    attempts.filter(
      (attempt) => attempt.kind === kind && locationKey(attempt.location) === locationKey(facing.location),
    ).length
  const willing = facings.filter(
    (facing) => facing.quantity > 0 && !facing.blocked && count(facing, 'refused') < unitRefusals,
  )
  const untried = withTrials(willing.filter((facing) => count(facing, 'nothing') === 0))
  const tries = attempts.filter((attempt) => attempt.kind === 'nothing').length
  const pool = untried.length > 0 ? untried : tries === 1 ? willing : []
  if (pool.length === 0) return { kind: 'short' }
  const reachable = pool.filter((facing) => facing.up)
  if (reachable.length === 0) return { kind: 'wait', for: 'connection', ms: undefined }
  const best = reachable.toSorted(
    (a, b) =>
      Number(a.restMs > 0) - Number(b.restMs > 0) ||
      Number(b.failing) - Number(a.failing) ||
      Number(b.primary) - Number(a.primary) ||
      b.quantity - a.quantity ||
      locationKey(a.location).localeCompare(locationKey(b.location)),
  )[0]!
  if (best.busy) return { kind: 'wait', for: 'cabinet', ms: undefined }
  if (best.restMs > 0) return { kind: 'wait', for: 'rest', ms: best.restMs }
  return { kind: 'dispense', location: best.location }
}

/**
 * A failing row is skipped if another row has the product. From time to time it is tried first, while the
 * other row can replace it. Otherwise it would be out of use until a technician comes.
 */
function withTrials(facings: readonly FacingView[]): readonly FacingView[] {
  const sound = facings.filter(({ failing }) => !failing)
  return sound.some(({ up }) => up)
    ? facings.filter(({ failing, trialMs }) => !failing || trialMs <= 0)
    : facings
}
