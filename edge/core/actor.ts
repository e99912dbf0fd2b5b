import type { Cancel } from '../../protocol/model/runtime.ts'
import { carryOut } from './act.ts'
import { ask } from './recovery/adoption.ts'
import { binStep } from './bins/bin-step.ts'
import type { Context } from './context.ts'
import { cyclesStep } from './bins/cycles.ts'
import { ordersStep } from './orders/order-step.ts'
import { firstOf, type Step, type Wait } from './step.ts'
import { startUpGraceMs } from './controllers.ts'
import { viewBins } from './bins/bin-view.ts'
import { viewOrders } from './orders/view.ts'

/** The hub's turns: each takes one event into the journal together with everything that follows from it. */
export interface Turns {
  turn: (work: () => void) => void
  /** Milliseconds since a turn last ended; since the beginning where none has. */
  quietMs(): number
  stop(): void
}

const MAX_STEPS = 10_000
const MAX_SLEEP_MS = 60 * 60_000

export function createTurns(context: () => Context, afterTurn: () => void): Turns {
  let cancelWake: Cancel | undefined
  let isStopped = false
  let endedAt: number | undefined

  function turn(work: () => void): void {
    const { store } = context()
    store.transact(() => {
      work()
      const sleepMs = settle()
      store.afterCommit(() => {
        endedAt = context().runtime.clock.monotonic()
        wakeIn(sleepMs)
        afterTurn()
      })
    })
  }

  /** Carries out step after step until there is nothing to do but wait. */
  function settle(): number | undefined {
    for (let count = 0; count < MAX_STEPS; count++) {
      const step = nextStep(context())
      if (step.kind === 'wait')
        return shorter(shorter(step.ms, askOverdue(context())), startUpGraceMs(context()) || undefined)
      carryOut(context(), step)
    }
    throw new Error('the hub does not come to rest')
  }

  function wakeIn(ms: number | undefined): void {
    cancelWake?.()
    cancelWake = undefined
    if (ms === undefined || isStopped) return
    const { clock } = context().runtime
    cancelWake = clock.after(Math.min(ms, MAX_SLEEP_MS), () => turn(() => {}))
  }

  return {
    turn,
    quietMs: () => context().runtime.clock.monotonic() - (endedAt ?? 0),
    stop() {
      isStopped = true
      cancelWake?.()
    },
  }
}

const shorter = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.min(a, b)

/** The next thing for the hub to do, of all its orders and bins. */
export function nextStep(context: Context): Step | Wait {
  const cycle = cyclesStep(context)
  if (cycle) return cycle
  const bins = viewBins(context)
  const world = viewOrders(context, bins)
  return firstOf([
    ordersStep(world),
    ...bins.map((bin) => {
      const order = world.orders.find((each) => each.id === bin.orderId)
      return binStep(bin, order?.openWhenReady ?? false, context.settings)
    }),
  ])
}

/** Asks for results that should have come by now; returns how long until the next is due. */
function askOverdue(context: Context): number | undefined {
  const { journal, devices, runtime, askAt } = context
  const now = runtime.clock.monotonic()
  let next: number | undefined
  const open = journal.operations.open()
  for (const id of askAt.keys()) if (!open.some((operation) => operation.id === id)) askAt.delete(id)
  for (const operation of open) {
    if (!devices.isUp(operation.controller)) continue
    if ((askAt.get(operation.id) ?? Infinity) <= now) ask(context, operation)
    const at = askAt.get(operation.id)
    if (at !== undefined) next = shorter(next, Math.max(1, at - now))
  }
  return next
}
