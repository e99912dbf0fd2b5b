import { doorToClose, isAvailable, isBusy, isFaulty, isPrepared, type BinView } from '../bins/bin.ts'
import type { OrderView, OrderWorld, UnitView } from './order-view.ts'
import { firstOf, wait, type Step, type Wait } from '../step.ts'

/** The next step of an order in PREPARING: bins down, units one by one, bins up. */
export function prepareStep(order: OrderView, held: readonly BinView[], world: OrderWorld): Step | Wait {
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
    if (isFaulty(bin) && bin.taken === 0 && !isBusy(bin)) yield { kind: 'release', bin: bin.number }
  const useful = held.filter((bin) => !isFaulty(bin) && bin.taken < bin.capacity)
  const space = useful.reduce((sum, bin) => sum + bin.capacity - bin.taken, 0)
  if (space < waiting.length) {
    const further = world.bins.find(isAvailable)
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
const isRaised = (bin: BinView): boolean => !isBusy(bin) && (bin.lift === 'up' || isFaulty(bin))
