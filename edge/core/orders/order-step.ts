import { isFree, isBusy, isServing, type BinView, doorToClose, isPrepared } from '../bins/bin.ts'
import type { OrderView, OrderWorld, UnitView } from './order-view.ts'
import { firstOf, wait, type Step, type Wait } from '../step.ts'

/** The next step of the orders, first come first served. */
export function ordersStep(world: OrderWorld): Step | Wait {
  return firstOf(decisions(world))
}

function* decisions(world: OrderWorld): Generator<Step | Wait> {
  let queueBlocked = false
  for (const order of world.orders) {
    if (order.phase !== 'queued') {
      yield orderStep(order, world)
      continue
    }
    const step = queuedStep(order, world, queueBlocked)
    if (step === 'no_bin') queueBlocked = true
    yield step === 'no_bin' ? wait(order.startBy - world.now + 1) : step
  }
}

function orderStep(order: OrderView, world: OrderWorld): Step | Wait {
  const held = world.bins.filter((bin) => bin.orderId === order.id)
  switch (order.phase) {
    case 'recovering':
      return recoveringStep(order, world)
    case 'preparing':
      return prepareStep(order, held, world)
    case 'ready':
      return readyStep(order, held, world)
    case 'collecting':
      return collectingStep(order, held, world)
    case 'queued':
    case 'completed':
    case 'cancelled':
    case 'timed_out':
    case 'failed':
    case 'unclaimed':
      return wait()
  }
}

/**
 * Starts an order, ends it as too late, or lets it wait. An order that waits for bins blocks later orders,
 * because otherwise a large order would starve. An order that waits for a silent controller blocks none.
 */
function queuedStep(order: OrderView, world: OrderWorld, queueBlocked: boolean): Step | Wait | 'no_bin' {
  const leftMs = order.startBy - world.now
  if (leftMs < 0) return { kind: 'end', orderId: order.id, phase: 'timed_out', reason: 'start_by' }
  if (!world.live || queueBlocked) return wait(leftMs + 1)
  const waiting = order.units.filter((unit) => unit.state === 'waiting')
  if (waiting.length === 0) return { kind: 'end', orderId: order.id, phase: 'cancelled', reason: 'withdrawn' }
  const choices = waiting.map((unit) => unit.choice)
  if (choices.every((choice) => choice?.kind === 'short'))
    return { kind: 'end', orderId: order.id, phase: 'failed', reason: 'out_of_stock' }
  if (choices.some((choice) => choice?.kind === 'wait' && choice.for === 'connection'))
    return wait(leftMs + 1)
  const bins = chooseBins(order, world)
  return bins === undefined ? 'no_bin' : { kind: 'prepare', orderId: order.id, bins }
}

/** The bins for an order: its reserved bin first, bins reserved for other orders last. */
export function chooseBins(order: OrderView, world: OrderWorld): number[] | undefined {
  const reserved = new Set(
    world.orders
      .filter((other) => other.id !== order.id && other.phase === 'queued')
      .map((other) => other.reservedBin),
  )
  const rank = (bin: BinView): number =>
    bin.number === order.reservedBin ? 0 : reserved.has(bin.number) ? 2 : 1
  const available = world.bins.filter(isFree).toSorted((a, b) => rank(a) - rank(b) || a.number - b.number)
  const serving = world.bins.filter(isServing).reduce((sum, bin) => sum + bin.capacity, 0)
  const units = order.units.filter((unit) => unit.state !== 'short')
  const needed = Math.min(units.length, serving)
  const chosen: BinView[] = []
  for (const bin of available) {
    if (chosen.reduce((sum, { capacity }) => sum + capacity, 0) >= needed) break
    chosen.push(bin)
  }
  const room = chosen.reduce((sum, { capacity }) => sum + capacity, 0)
  return chosen.length === 0 || room < needed ? undefined : chosen.map((bin) => bin.number)
}

/** Waits until every controller has reported its memory of the order, or until no part of it may start any more. */
function recoveringStep(order: OrderView, world: OrderWorld): Step | Wait {
  const leftMs = order.startBy + world.times.prepareTimeoutMs - world.now
  const running = order.units.some((unit) => unit.state === 'running')
  if (world.live && ((order.accounted && !running) || leftMs < 0))
    return { kind: 'recover', orderId: order.id }
  return wait(Math.max(0, leftMs) + 1)
}

function readyStep(order: OrderView, held: readonly BinView[], { now, times }: OrderWorld): Step | Wait {
  if (held.some((bin) => bin.opened)) return { kind: 'collecting', orderId: order.id }
  return unclaimedAt(order, order.readyAt + times.unclaimedTimeoutMs - now)
}

/** Done when every bin was opened, emptied and closed. */
function collectingStep(order: OrderView, held: readonly BinView[], world: OrderWorld): Step | Wait {
  const { now, times } = world
  const unclaimed = unclaimedAt(order, order.collectingAt + times.unclaimedTimeoutMs - now)
  const isDone = (bin: BinView): boolean =>
    bin.opened && bin.up && !isBusy(bin) && bin.door === 'closed' && bin.emptyForMs !== undefined
  if (!held.every(isDone)) return unclaimed
  const leftMs = Math.max(0, ...held.map((bin) => times.emptyDebounceMs - (bin.emptyForMs ?? 0)))
  if (leftMs > 0) return firstOf([unclaimed, wait(leftMs)])
  return { kind: 'end', orderId: order.id, phase: 'completed', reason: null }
}

function unclaimedAt(order: OrderView, leftMs: number): Step | Wait {
  if (leftMs > 0) return wait(leftMs)
  return { kind: 'end', orderId: order.id, phase: 'unclaimed', reason: 'unclaimed' }
}

/** The next step of an order in PREPARING: bins down, units one by one, bins up. */
function prepareStep(order: OrderView, held: readonly BinView[], world: OrderWorld): Step | Wait {
  const { now, times } = world
  const running = order.units.some((unit) => unit.state === 'running')
  const waiting = order.units.some((unit) => unit.state === 'waiting')
  const leftMs = order.preparingAt + times.prepareTimeoutMs - now
  if (leftMs < 0) return lateStep(order, held, world, -leftMs)
  const step = waiting
    ? firstOf(dispensing(order, held, world))
    : running
      ? wait()
      : firstOf(finishing(order, held, times))
  return step.kind === 'wait' ? firstOf([step, wait(leftMs + 1)]) : step
}

/** After the deadline the hub dispenses nothing more. It hands over dropped units, or ends an order without any. */
function lateStep(
  order: OrderView,
  held: readonly BinView[],
  { times, startUpGraceMs }: OrderWorld,
  lateMs: number,
): Step | Wait {
  const graceMs = times.prepareGraceMs - lateMs
  const waiting = order.units.find((unit) => unit.state === 'waiting')
  const isRunning = order.units.some((unit) => unit.state === 'running')
  // Waits for a unit that is falling, or was falling when the hub stopped: its result decides about a refund.
  const runningMs = Math.max(graceMs, startUpGraceMs)
  if (isRunning && runningMs > 0) return wait(runningMs + 1)
  if (order.settlingMs > 0) return wait(order.settlingMs)
  if (!order.units.some((unit) => unit.state === 'dropped'))
    return { kind: 'end', orderId: order.id, phase: 'timed_out', reason: 'prepare_timeout' }
  if (isRunning) return { kind: 'give_up', orderId: order.id }
  if (waiting) return shortOf(order, waiting)
  const step = firstOf(finishing(order, held))
  if (step.kind !== 'wait') return step
  // A lift that cannot be raised must not hold the order without end. The order becomes ready, with the door
  // where it is.
  const raisingMs = graceMs + times.prepareGraceMs
  return raisingMs > 0 ? firstOf([step, wait(raisingMs + 1)]) : readyWith(order, filledOf(held))
}

function* dispensing(order: OrderView, held: readonly BinView[], world: OrderWorld): Generator<Step | Wait> {
  const waiting = order.units.filter((unit) => unit.state === 'waiting')
  for (const unit of waiting) if (unit.choice?.kind === 'short') yield shortOf(order, unit)
  for (const bin of held)
    if (bin.isFaulty && bin.taken === 0 && !isBusy(bin)) yield { kind: 'release', bin: bin.number }
  const useful = held.filter((bin) => !bin.isFaulty && bin.taken < bin.capacity)
  const space = useful.reduce((sum, bin) => sum + bin.capacity - bin.taken, 0)
  if (space < waiting.length) {
    const further = world.bins.find(isFree)
    if (further) yield { kind: 'hold', orderId: order.id, bin: further.number }
    // Units that already lie in bins do not wait for a bin that may never become free.
    if (space === 0 && held.some((bin) => bin.taken > 0)) yield shortOf(order, waiting[0]!)
  }
  for (const bin of useful) yield lowered(bin)
  const target = held.find(isPrepared)
  for (const unit of waiting) {
    if (unit.choice?.kind === 'wait') yield wait(unit.choice.ms)
    if (unit.choice?.kind === 'dispense' && target)
      yield {
        kind: 'dispense',
        orderId: order.id,
        lineId: unit.lineId,
        unit: unit.unit,
        location: unit.choice.location,
        bin: target.number,
      }
  }
}

const shortOf = (order: OrderView, unit: UnitView): Step => ({
  kind: 'short',
  orderId: order.id,
  lineId: unit.lineId,
  unit: unit.unit,
})

/** Brings a bin into the position in which units may fall into it. */
function lowered(bin: BinView): Step | Wait {
  return bin.lift === 'down' && bin.door === 'closed' ? wait() : moved(bin, 'lower_lift')
}

/** Moves a bin's lift after closing its door: a lift does not move with an open door. */
function moved(bin: BinView, action: 'raise_lift' | 'lower_lift'): Step | Wait {
  if (!bin.up || isBusy(bin)) return wait()
  const door = doorToClose(bin)
  switch (door.kind) {
    case 'unsure':
      return wait(door.ms)
    case 'moving':
      return wait()
    case 'open':
      return rested(bin, { kind: 'move', bin: bin.number, action: 'close_door' })
    case 'closed':
      return rested(bin, { kind: 'move', bin: bin.number, action })
  }
}

const rested = (bin: BinView, step: Step): Step | Wait => (bin.restMs > 0 ? wait(bin.restMs) : step)

/**
 * All units are final: lifts the filled bins, or ends the order. If `times` is given, missing units may be
 * tried from another row.
 */
function* finishing(
  order: OrderView,
  held: readonly BinView[],
  times?: Pick<OrderWorld['times'], 'lateDropMs'>,
): Generator<Step | Wait> {
  if (order.settlingMs > 0) {
    yield wait(order.settlingMs)
    return
  }
  for (const unit of order.units)
    if (times && isMissing(unit, held, times.lateDropMs) && unit.choice && unit.choice.kind !== 'short')
      yield { kind: 'elsewhere', orderId: order.id, lineId: unit.lineId, unit: unit.unit }
  if (!order.units.some((unit) => unit.state === 'dropped')) {
    yield { kind: 'end', orderId: order.id, phase: 'failed', reason: 'nothing_dropped' }
    return
  }
  const filled = filledOf(held)
  for (const bin of held)
    if (!filled.includes(bin) && !isBusy(bin)) yield { kind: 'release', bin: bin.number }
  const low = filled.filter((bin) => !isRaised(bin))
  if (low.length === 0) {
    yield readyWith(order, filled)
    return
  }
  for (const bin of low) yield moved(bin, 'raise_lift')
}

/**
 * An unconfirmed unit that did not fall into its bin: the bin has been empty for longer than a unit can hang.
 * Its row stays blocked, and the dispense stays unknown.
 */
const isMissing = (unit: UnitView, held: readonly BinView[], lateDropMs: number): boolean =>
  unit.state === 'doubtful' &&
  held.some(({ number, emptyForMs = 0 }) => number === unit.bin && emptyForMs >= lateDropMs)

const filledOf = (held: readonly BinView[]): BinView[] =>
  held.filter((bin) => bin.filled > 0 || (bin.taken > 0 && bin.occupied === true))

const readyWith = (order: OrderView, filled: readonly BinView[]): Step => ({
  kind: 'ready',
  orderId: order.id,
  bins: filled.map((bin) => bin.number),
})

/** A lift that cannot go up must not keep the customer from the goods: the door opens anyway. */
const isRaised = (bin: BinView): boolean => !isBusy(bin) && (bin.lift === 'up' || bin.isFaulty)
