import type { OrderPhase } from '../../journal/tables.ts'
import { isControllerUsable, type Context } from '../context.ts'
import type { BinState, Door, Lift } from '../devices.ts'
import type { BinAction } from '../step.ts'

/** A delivery bin, as decisions see it: what its sensors say, what the journal remembers, what is under way. */
export interface BinView {
  number: number
  /** Units that fit at once. */
  capacity: number
  enabled: boolean
  /** Its controller is connected, its memory reconciled with the journal, and the bin has said where it stands. */
  up: boolean
  door: Door
  lift: Lift
  /** Door and light barrier as they are reported: values that held; `unsettled` if there is none. */
  reported: { door: Door | 'unsettled'; occupied: boolean | 'unsettled' | undefined }
  /** In how many milliseconds time alone changes `reported`. */
  settlesMs: number | undefined
  /** For how long its switches have not said where door and lift stand; undefined while they do. */
  unsureForMs: number | undefined
  occupied: boolean | undefined
  /** For how long it has been empty without interruption; undefined while it is not known to be empty. */
  emptyForMs: number | undefined
  /** An operation of its door or lift has not ended. */
  moving: boolean
  /** A dispense into it has not ended. */
  receiving: boolean
  /** The order that holds it, and that order's phase. */
  orderId: string | null
  phase: OrderPhase | undefined
  /** Its door was open since that order was ready. */
  opened: boolean
  failures: number
  fault: string | null
  /** The hub tries by itself whether it moves again. */
  onTrial: boolean
  /** A technician accepts the hub, and no orders are taken: nothing moves by itself. */
  attended: boolean
  /** How long it must rest before it moves again by itself, after a failure. */
  restMs: number
  /** Units of its order that were seen to fall into it. */
  filled: number
  /** Those, the doubtful ones and the one that is falling. */
  taken: number
}

/** Switches bounce: until they have said nothing for this long, what they said last still holds. */
const UNSURE_AFTER_MS = 500

/**
 * Where the bin's door stands, for a decision to close it. A door that stopped on its way says `unknown`; only closing it
 * again shows more.
 */
export function doorToClose(
  bin: BinView,
): { kind: 'closed' | 'moving' | 'open' } | { kind: 'unsure'; ms: number } {
  if (bin.door === 'closed' || bin.door === 'moving' || bin.door === 'open') return { kind: bin.door }
  const ms = UNSURE_AFTER_MS - (bin.unsureForMs ?? 0)
  return ms > 0 ? { kind: 'unsure', ms } : { kind: 'open' }
}

/** Nothing may move it: it moves, or something falls into it. */
export const isBusy = (bin: Pick<BinView, 'moving' | 'receiving'>): boolean => bin.moving || bin.receiving

/** Failures in a row after which a bin is given up for the order in hand. */
const FAULT_AFTER = 3

export const isFaulty = (bin: Pick<BinView, 'failures'>): boolean => bin.failures >= FAULT_AFTER

/** Whether a new order may have it: enabled, healthy, empty, closed, nobody's. */
export const isAvailable = (bin: BinView): boolean =>
  bin.orderId === null &&
  bin.enabled &&
  bin.up &&
  bin.fault === null &&
  !isBusy(bin) &&
  bin.door === 'closed' &&
  bin.occupied === false

/** Whether units may fall into it: they must not fall past an open door, nor onto a raised lift. */
export const isPrepared = (bin: BinView): boolean =>
  bin.up &&
  !bin.moving &&
  !isFaulty(bin) &&
  bin.door === 'closed' &&
  bin.lift === 'down' &&
  bin.taken < bin.capacity

/** Whether it may serve orders at all, now or when it is free again. */
export const isServing = (bin: BinView): boolean => bin.enabled && !isFaulty(bin)

/** Why a bin must not move now, by somebody's command. */
export type Hindrance = 'offline' | 'interlock'

type Rule = (bin: BinView) => boolean

const isFilling: Rule = (bin) => bin.phase === 'preparing'
const isWaiting: Rule = (bin) => bin.phase === 'ready' || bin.phase === 'collecting'
/** No lift moves while its door is open, or may be. */
const isDoorNotClosed: Rule = (bin) => bin.door !== 'closed'
const isLiftMoving: Rule = (bin) => bin.lift === 'moving'

/** What forbids each motion, beyond what forbids them all: an operation under way. */
const forbidden: Record<BinAction, readonly Rule[]> = {
  // An open bin is none to dispense into: while an order is being filled in, its door stays closed.
  open_door: [isFilling, isLiftMoving],
  close_door: [isFilling, isLiftMoving],
  raise_lift: [isFilling, isDoorNotClosed],
  // What waits for its customer is not taken down again.
  lower_lift: [isFilling, isWaiting, isDoorNotClosed],
}

/** Whether a command may move the bin now. */
export function hindrance(action: BinAction, bin: BinView): Hindrance | undefined {
  if (!bin.up) return 'offline'
  if (isBusy(bin) || forbidden[action].some((rule) => rule(bin))) return 'interlock'
  return undefined
}

function steadyOf({ steady }: BinState, now: number): Pick<BinView, 'reported' | 'settlesMs'> {
  const waits = [steady.door.waitMs(now), steady.occupied.waitMs(now)].filter((ms) => ms !== undefined)
  return {
    reported: { door: steady.door.value(now) ?? 'unknown', occupied: steady.occupied.value(now) },
    settlesMs: waits.length > 0 ? Math.min(...waits) : undefined,
  }
}

/** The bins as decisions see them. */
export function viewBins(context: Context): BinView[] {
  const { state, layout, devices, runtime } = context
  const disabled = [...(state.facts.config()?.disabled_bins ?? []), ...state.facts.get('held').bins]
  const open = state.operations.open()
  // One that was left without an end keeps nothing from the customers of orders that are taken again.
  const attended = state.facts.get('held').orders && state.acceptances.open() !== undefined
  const now = runtime.clock.monotonic()
  const since = (at: number | undefined) => (at === undefined ? undefined : now - at)
  return layout.bins.map(({ number, capacity, device, controller }) => {
    const row = state.bins.find(number)!
    const reported = devices.bin(number)
    const order = row.order_id === null ? undefined : state.orders.find(row.order_id)
    const units = order ? state.orders.units(order.id).filter((unit) => unit.bin === row.number) : []
    return {
      number,
      capacity,
      enabled: !disabled.includes(number),
      up: isControllerUsable(context, controller) && reported.hasReported,
      door: reported.door,
      lift: reported.lift,
      ...steadyOf(reported, now),
      unsureForMs: since(reported.unsureSince),
      occupied: reported.occupied,
      emptyForMs: since(reported.emptySince),
      moving: open.some((operation) => operation.device === device),
      receiving: open.some((operation) => operation.action === 'dispense' && operation.bin === row.number),
      orderId: row.order_id,
      phase: order?.phase,
      opened: row.opened,
      failures: row.failures,
      fault: row.fault,
      onTrial: row.on_trial,
      attended,
      restMs: devices.restMs(device),
      filled: units.filter((unit) => unit.state === 'dropped').length,
      taken: units.filter((unit) => ['dropped', 'doubtful', 'running'].includes(unit.state)).length,
    }
  })
}
