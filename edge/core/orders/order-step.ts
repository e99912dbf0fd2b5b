import { isAvailable, isBusy, isServing, type BinView } from '../bins/bin.ts'
import type { OrderView, OrderWorld } from './order-view.ts'
import { prepareStep } from './prepare-step.ts'
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
  const available = world.bins
    .filter(isAvailable)
    .toSorted((a, b) => rank(a) - rank(b) || a.number - b.number)
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
