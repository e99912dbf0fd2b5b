import type { OperationRow, OrderPhase } from '../../journal/tables.ts'
import { isControllerUsable, type Context } from '../context.ts'
import type { BinState, Door, Lift } from '../devices.ts'
import { wait, type BinAction, type Step, type Wait } from '../step.ts'
import { deviceSubject } from '../../../protocol/model/subject.ts'
import { numberOf } from '../layout.ts'
import { runningMs } from '../motion-time.ts'
import { setAlarm, settleOperation } from '../ledger.ts'

/** A delivery bin as decisions see it: sensor values, journal state and running operations. */
export interface BinView {
  number: number
  /** Units that fit at once. */
  capacity: number
  enabled: boolean
  /** Its controller is connected and reconciled with the journal, and the bin has reported its position. */
  up: boolean
  door: Door
  lift: Lift
  /** Door and light barrier as reported to the cloud: debounced values; `unsettled` if there is none. */
  reported: { door: Door | 'unsettled'; occupied: boolean | 'unsettled' | undefined }
  /** Milliseconds until `reported` changes by time alone. */
  settlesMs: number | undefined
  /** Milliseconds until a door with an unknown position counts as open. */
  unsureMs: number
  occupied: boolean | undefined
  /** Milliseconds of continuous emptiness; undefined if the bin is not known to be empty. */
  emptyForMs: number | undefined
  /**
   * Milliseconds until its emptiness is proven, so that another order may use it; undefined if it is not known to be
   * empty. A light barrier may flicker while the line falls silent, and a unit may hang above the bin.
   */
  provenEmptyInMs: number | undefined
  /** A door or lift operation is open. */
  moving: boolean
  /** A dispense into the bin is open. */
  receiving: boolean
  /** The order that holds the bin, and the phase of that order. */
  orderId: string | null
  phase: OrderPhase | undefined
  /** Its door was open after that order became ready. */
  opened: boolean
  failures: number
  /** The current order stops using the bin: it failed too often. */
  isFaulty: boolean
  fault: string | null
  /** The hub is testing whether the failed part moves again. */
  onTrial: boolean
  /** A technician runs an acceptance, and no orders are taken. Nothing moves automatically. */
  attended: boolean
  /** Milliseconds that the bin must rest after a failure before an automatic motion. */
  restMs: number
  /** Units of its order that were seen to fall into it. */
  filled: number
  /** `filled`, plus unconfirmed units, plus the unit that is falling. */
  taken: number
}

/**
 * The door's position for a decision to close it. A door that stopped on its way reports `unknown`; only
 * closing it again shows its position.
 */
export function doorToClose(
  bin: BinView,
): { kind: 'closed' | 'moving' | 'open' } | { kind: 'unsure'; ms: number } {
  if (bin.door === 'closed' || bin.door === 'moving' || bin.door === 'open') return { kind: bin.door }
  return bin.unsureMs > 0 ? { kind: 'unsure', ms: bin.unsureMs } : { kind: 'open' }
}

/** No part of the bin may move: it is moving, or a unit falls into it. */
export const isBusy = (bin: Pick<BinView, 'moving' | 'receiving'>): boolean => bin.moving || bin.receiving

/** Whether a unit may be tested into the bin: enabled, healthy, empty, closed and not held by an order. */
export const isAvailable = (bin: BinView): boolean =>
  bin.orderId === null &&
  bin.enabled &&
  bin.up &&
  bin.fault === null &&
  !isBusy(bin) &&
  bin.door === 'closed' &&
  bin.occupied === false

/** Whether a new order may use the bin. */
export const isFree = (bin: BinView): boolean => isAvailable(bin) && bin.provenEmptyInMs === 0

/** Whether units may fall into the bin. Units must not fall past an open door or onto a raised lift. */
export const isPrepared = (bin: BinView): boolean =>
  bin.up &&
  !bin.moving &&
  !bin.isFaulty &&
  bin.door === 'closed' &&
  bin.lift === 'down' &&
  bin.taken < bin.capacity

/** Whether the bin may serve orders at all, now or when it is free again. */
export const isServing = (bin: BinView): boolean => bin.enabled && !bin.isFaulty

/** Why a command must not move the bin now. */
type Hindrance = 'offline' | 'interlock'

type Rule = (bin: BinView) => boolean

const isFilling: Rule = (bin) => bin.phase === 'preparing'
const isWaiting: Rule = (bin) => bin.phase === 'ready' || bin.phase === 'collecting'
/** A lift does not move while its door is open or may be open. */
const isDoorNotClosed: Rule = (bin) => bin.door !== 'closed'
const isLiftMoving: Rule = (bin) => bin.lift === 'moving'

/** Rules that forbid each motion. An open operation forbids all motions. */
const forbidden: Record<BinAction, readonly Rule[]> = {
  // The hub does not dispense into an open bin: while an order is filled into it, the door stays closed.
  open_door: [isFilling, isLiftMoving],
  close_door: [isFilling, isLiftMoving],
  raise_lift: [isFilling, isDoorNotClosed],
  // A bin that waits for its customer is not lowered again.
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

/** Its controller is silent, and has ended the motion by itself. Its result will still be read. */
const isOver = (context: Context, operation: OperationRow): boolean =>
  !context.devices.isUp(operation.controller) && runningMs(context, operation) === 0

/** Milliseconds in which the unit of a dispense with unknown outcome may still hang in its cabinet, and fall. */
export function hangingMs({ settings, cloud }: Context, unknown: OperationRow): number {
  if (unknown.action !== 'dispense' || unknown.ended_at === null) return 0
  return Math.min(
    settings.lateDropMs,
    cloud.countedFrom(unknown.ended_at) + settings.lateDropMs - cloud.now(),
  )
}

/** All bins as decisions see them. */
export function viewBins(context: Context): BinView[] {
  const { state, layout, devices, runtime, settings } = context
  const disabled = [...(state.facts.config()?.disabled_bins ?? []), ...state.facts.get('held').bins]
  const open = state.operations.open()
  const unknown = state.operations.unknown()
  // An acceptance that was never ended must not affect customers after orders are taken again.
  const attended = state.facts.get('held').orders && state.acceptances.open() !== undefined
  const now = runtime.clock.monotonic()
  const since = (at: number | undefined) => (at === undefined ? undefined : now - at)
  return layout.bins.map(({ number, capacity, device, controller }) => {
    const row = state.bins.find(number)!
    const reported = devices.bin(number)
    const order = row.order_id === null ? undefined : state.orders.find(row.order_id)
    const units = order ? state.orders.units(order.id).filter((unit) => unit.bin === row.number) : []
    const emptyForMs = since(reported.emptySince)
    const hanging = unknown.filter((operation) => operation.bin === row.number)
    const unprovenMs = Math.max(
      0,
      settings.emptyProofMs - (emptyForMs ?? 0),
      ...hanging.map((operation) => hangingMs(context, operation)),
    )
    return {
      number,
      capacity,
      enabled: !disabled.includes(number),
      up: isControllerUsable(context, controller) && reported.hasReported,
      door: reported.door,
      lift: reported.lift,
      ...steadyOf(reported, now),
      unsureMs: settings.binUnsureMs - (since(reported.unsureSince) ?? 0),
      occupied: reported.occupied,
      emptyForMs,
      provenEmptyInMs: emptyForMs === undefined ? undefined : unprovenMs,
      moving: open.some((operation) => operation.device === device),
      receiving: open.some(
        (operation) =>
          operation.action === 'dispense' && operation.bin === row.number && !isOver(context, operation),
      ),
      orderId: row.order_id,
      phase: order?.phase,
      opened: row.opened,
      failures: row.failures,
      isFaulty: row.failures >= settings.binFaultTries,
      fault: row.fault,
      onTrial: row.on_trial,
      attended,
      restMs: devices.restMs(device),
      filled: units.filter((unit) => unit.state === 'dropped').length,
      taken: units.filter((unit) => ['dropped', 'doubtful', 'running'].includes(unit.state)).length,
    }
  })
}

interface BinTimes {
  closeAfterEmptyMs: number
  emptyDebounceMs: number
  /** Consecutive failures after which the hub leaves a bin to a technician. */
  binTries: number
}

/** Automatic motions of a bin that no order fills: it closes after the customer, lowers its lift, and becomes free. */
export function binStep(bin: BinView, openWhenReady: boolean, times: BinTimes): Step | Wait {
  if (!bin.up || isBusy(bin)) return wait()
  switch (situation(bin)) {
    case 'free':
      return healed(bin, times)
    case 'filling':
      return wait()
    case 'waiting':
      if (bin.door === 'open' && !bin.opened) return { kind: 'opened', bin: bin.number }
      if (openWhenReady && !bin.opened && !bin.isFaulty) return opened(bin)
      return closeBehindCustomer(bin, times)
    case 'leftover':
      if (bin.door === 'open' && !bin.opened) return { kind: 'opened', bin: bin.number }
      return bin.door === 'closed' ? clear(bin, times) : closeBehindCustomer(bin, times)
  }
}

/** A technician works at the bin, and no order waits in it. It moves only by command. */
const isLeftToPeople = (bin: BinView): boolean => bin.attended && situation(bin) !== 'waiting'

type Situation = 'free' | 'filling' | 'waiting' | 'leftover'

const situations: Record<OrderPhase, Situation> = {
  queued: 'filling',
  recovering: 'filling',
  preparing: 'filling',
  ready: 'waiting',
  collecting: 'waiting',
  completed: 'leftover',
  cancelled: 'leftover',
  timed_out: 'leftover',
  failed: 'leftover',
  unclaimed: 'leftover',
}

const situation = (bin: BinView): Situation =>
  bin.orderId === null ? 'free' : bin.phase === undefined ? 'leftover' : situations[bin.phase]

function move(bin: BinView, action: BinAction): Step | Wait {
  if (isLeftToPeople(bin)) return wait()
  return bin.restMs > 0 ? wait(bin.restMs) : { kind: 'move', bin: bin.number, action }
}

/** Opens for a customer who need not ask. Opens again if the door stopped on its way. */
function opened(bin: BinView): Step | Wait {
  const door = doorToClose(bin)
  if (door.kind === 'moving') return wait()
  return door.kind === 'unsure' ? wait(door.ms) : move(bin, 'open_door')
}

/**
 * Brings a free bin home if it stopped on its way. A failed bin is retried at growing intervals, at most
 * `binTries` times: a hub without staff would lose it otherwise. A door that stands open was opened by a
 * person, unless the hub opened it as a trial.
 */
function healed(bin: BinView, { binTries }: BinTimes): Step | Wait {
  if (bin.provenEmptyInMs !== 0) return wait(bin.provenEmptyInMs)
  if (bin.failures >= binTries) return wait()
  if (bin.door === 'unknown' || (bin.door === 'open' && bin.onTrial)) {
    const door = doorToClose(bin)
    return door.kind === 'unsure' ? wait(door.ms) : move(bin, 'close_door')
  }
  if (bin.door !== 'closed') return wait()
  if (bin.fault === null) return bin.onTrial && bin.lift === 'up' ? move(bin, 'lower_lift') : wait()
  if (partOf(bin.fault) === 'door') return tried(bin, 'open_door')
  return bin.lift === 'down' ? tried(bin, 'raise_lift') : move(bin, 'lower_lift')
}

/** A trial motion shows whether a failed part moves again. */
const tried = (bin: BinView, action: BinAction): Step | Wait =>
  isLeftToPeople(bin)
    ? wait()
    : bin.restMs > 0
      ? wait(bin.restMs)
      : { kind: 'move', bin: bin.number, action, isTrial: true }

function closeBehindCustomer(bin: BinView, { closeAfterEmptyMs }: BinTimes): Step | Wait {
  if (!bin.opened || bin.emptyForMs === undefined) return wait()
  const door = doorToClose(bin)
  if (door.kind === 'closed' || door.kind === 'moving') return wait()
  const leftMs = Math.max(closeAfterEmptyMs - bin.emptyForMs, door.kind === 'unsure' ? door.ms : 0)
  return leftMs > 0 ? wait(leftMs) : move(bin, 'close_door')
}

/** Releases the bin of an ended order. Units that fell into it must have been taken out through its door first. */
function clear(bin: BinView, { emptyDebounceMs }: BinTimes): Step | Wait {
  if (bin.door !== 'closed' || bin.emptyForMs === undefined) return wait()
  if (bin.filled > 0 && !bin.opened) return wait()
  const leftMs = emptyDebounceMs - bin.emptyForMs
  if (leftMs > 0) return wait(leftMs)
  if (bin.lift !== 'down') return move(bin, 'lower_lift')
  return bin.provenEmptyInMs ? wait(bin.provenEmptyInMs) : { kind: 'release', bin: bin.number }
}

/** The final position of each motion. */
export const goals: Record<BinAction, { door: Door } | { lift: Lift }> = {
  open_door: { door: 'open' },
  close_door: { door: 'closed' },
  raise_lift: { lift: 'up' },
  lower_lift: { lift: 'down' },
}

const rowOf = ({ state }: Context, { device }: OperationRow) =>
  state.bins.all().find((row) => row.number === numberOf('bin', device))

/**
 * The door or lift is at its target until its sensors report otherwise. A motion of an earlier connection is
 * older than the sensor values of this connection: a person may have closed the door since.
 */
export function noteMotionSucceeded(context: Context, operation: OperationRow): void {
  const { state, devices } = context
  const number = numberOf('bin', operation.device)
  if (number === undefined || operation.action === 'dispense') return
  const { sent, hasMoved, door, lift } = devices.bin(number)
  const stands = operation.action.endsWith('door') ? door : lift
  // A later report may have come first: its part has moved since.
  if (sent === operation.id && (stands === 'moving' || !hasMoved))
    devices.note({ device: operation.device, ...goals[operation.action] }, true)
  devices.endRest(operation.device)
  const bin = rowOf(context, operation)
  if (!bin) return
  if (operation.action === 'close_door' || operation.action === 'lower_lift')
    state.bins.change(bin.number, { on_trial: false })
  // A part that was already at its target proves nothing.
  if (!operation.moved || bin.fault === null || partOf(bin.fault) !== partOf(operation.action)) return
  state.bins.change(bin.number, { failures: 0, fault: null })
  setAlarm(context, 'bin_fault', deviceSubject(operation.device), false, '')
}

/** The part of a motion, or of a motion's fault. */
const partOf = (motion: string): 'door' | 'lift' => (motion.includes('door') ? 'door' : 'lift')

/**
 * Counts the failure against the bin. The bin then has a fault until a motion of the same part succeeds. A
 * door that met a hand or a bag is not broken: it only rests, longer each time.
 */
export function noteMotionFailed(context: Context, operation: OperationRow, why: string): void {
  const { state, devices, settings } = context
  devices.rest(operation.device, operation.id, { firstMs: settings.retryMs, maxMs: settings.maxRetryMs })
  const bin = rowOf(context, operation)
  if (!bin || why === 'obstructed') return
  const fault = `${operation.action}:${why}`
  // An existing fault is not replaced by a fault of the other part, or by a fault of the hub's repair
  // attempt.
  const isFirst = bin.fault === null
  const isSame = isFirst || partOf(bin.fault!) === partOf(fault)
  if (isSame) state.bins.change(bin.number, { failures: bin.failures + 1, fault: bin.fault ?? fault })
  setAlarm(context, 'bin_fault', deviceSubject(operation.device), true, `${operation.action} ${why}`)
}

/** Resolves motions of unknown outcome by the position of the door or lift, once its sensors report it. */
export function settleMotionBySensor(context: Context, device: string): void {
  const { state, devices, cloud } = context
  const number = numberOf('bin', device)
  if (number === undefined) return
  const bin = devices.bin(number)
  for (const operation of state.operations.unknown()) {
    if (operation.device !== device || operation.action === 'dispense') continue
    const goal = goals[operation.action]
    const stands = 'door' in goal ? bin.door : bin.lift
    if (stands === 'unknown' || stands === 'moving') continue
    const happened = stands === ('door' in goal ? goal.door : goal.lift)
    const end = { ...operation, state: 'settled', ended_at: cloud.now() } as const
    settleOperation(context, operation, { end, by: 'sensor', happened })
  }
}
