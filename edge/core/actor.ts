import type { Cancel } from '../../protocol/model/runtime.ts'
import { StorageError } from '../journal/storage-error.ts'
import { isMachineFault } from '../journal/store.ts'
import { binDevice } from './layout.ts'
import { binStep } from './bins/bin-step.ts'
import { viewBins, type BinView } from './bins/bin.ts'
import { cyclesStep } from './bins/cycles.ts'
import { isWithoutCabinets, startUpGraceMs, type Context } from './context.ts'
import { watchStore } from './housekeeping.ts'
import { askOverdue, intend } from './operations/intend.ts'
import { giveUpRunning } from './operations/outcomes.ts'
import { ordersStep } from './orders/order-step.ts'
import { viewOrders } from './orders/order-view.ts'
import { collectOrder, dispenseUnit, endOrder, prepareOrder, readyOrder } from './orders/orders.ts'
import { recoverOrder } from './recovery/orders.ts'
import { noteFridgeDoors, watchFridges } from './fridges.ts'
import { reportStates } from './states.ts'
import { watchHardware } from './watches.ts'
import { firstOf, type Step, type Wait } from './step.ts'
import { blockedRows, type BlockedRows } from './withheld.ts'

/**
 * The hub's core as an actor: it handles one event at a time, and each in one transaction together with every step that
 * follows from it. Effects run after the commit; what they cause is an event of its own.
 */
export interface Actor {
  /**
   * Handles one event: `work` takes it into the journal. False if the storage fails: nothing of it happened, and the next
   * step is tried again soon.
   */
  handle: (work: () => void) => boolean
  /** Milliseconds since an event was last handled; since the beginning where none was. */
  quietMs(): number
  stop(): void
}

const MAX_SLEEP_MS = 60 * 60_000

/** `onHandled` is called after the commit of each event. */
export function createActor(context: () => Context, onHandled: () => void): Actor {
  let cancelWake: Cancel | undefined
  let cancelTelling: Cancel | undefined
  let isStopped = false
  let handledAt: number | undefined

  function handle(work: () => void): boolean {
    const { store, runtime, settings } = context()
    const end = (sleepMs: number | undefined): void => {
      handledAt = runtime.clock.monotonic()
      wakeIn(sleepMs)
      onHandled()
    }
    try {
      store.transact(() => {
        work()
        const sleepMs = takeSteps(context())
        store.afterCommit(() => end(sleepMs))
      })
      if (store.failure() !== undefined) tryAgain()
      return true
    } catch (error) {
      if (!(error instanceof StorageError)) throw error
      end(settings.fullRetryMs)
      tryAgain()
      return false
    }
  }

  /** Soon, and by itself, until the storage works: nothing else may happen meanwhile. */
  function tryAgain(): void {
    const { store, runtime, settings } = context()
    if (isStopped) return
    cancelTelling ??= runtime.clock.after(settings.fullRetryMs, () => {
      cancelTelling = undefined
      store.relieve()
      handle(() => watchStore(context()))
    })
  }

  function wakeIn(ms: number | undefined): void {
    cancelWake?.()
    cancelWake = undefined
    if (ms === undefined || isStopped) return
    cancelWake = context().runtime.clock.after(Math.min(ms, MAX_SLEEP_MS), () => handle(() => {}))
  }

  return {
    handle,
    quietMs: () => context().runtime.clock.monotonic() - (handledAt ?? 0),
    stop() {
      isStopped = true
      cancelWake?.()
      cancelTelling?.()
    },
  }
}

/** Carries out step after step until there is nothing to do but wait. Returns until when, where time alone changes that. */
function takeSteps(context: Context): number | undefined {
  const taken: string[] = []
  for (;;) {
    const bins = viewBins(context)
    const blocks = blockedRows(context)
    const step = nextStep(context, bins, blocks)
    if (step.kind === 'wait') {
      reportOwedSnapshot(context)
      const fridges = watchFridges(context)
      const ajar = noteFridgeDoors(context)
      const hardware = watchHardware(context)
      const reported = reportStates(context, bins, blocks)
      const waits = [
        step.ms,
        askOverdue(context),
        startUpGraceMs(context) || undefined,
        fridges,
        ajar,
        hardware,
        reported,
      ]
      const known = waits.filter((ms) => ms !== undefined)
      return known.length > 0 ? Math.min(...known) : undefined
    }
    const key = JSON.stringify(step)
    const first = taken.indexOf(key)
    taken.push(key)
    // In one event no step is due twice: one that is has changed nothing, and would be due for ever.
    const circle = first < 0 ? [] : taken.slice(first).map((each) => JSON.parse(each) as Step)
    const failed = first < 0 ? tryStep(context, step) : 'the decisions go round in a circle'
    if (failed !== undefined && !setAside(context, [step, ...circle], failed)) return undefined
  }
}

/** Cabinets have been met since the ledger's epoch had to begin without a snapshot: what the hub holds is known now. */
function reportOwedSnapshot(context: Context): void {
  const { state, ledger } = context
  if (!state.facts.get('owes_snapshot') || !state.facts.get('live')) return
  if (startUpGraceMs(context) === 0 && !isWithoutCabinets(context)) ledger.reportSnapshot()
}

/** Says why the step cannot be carried out, and never can be; a fault of the machine is thrown on. */
function tryStep(context: Context, step: Step): string | undefined {
  try {
    context.store.savepoint(() => carryOut(context, step))
    return undefined
  } catch (error) {
    if (isMachineFault(error)) throw error
    return (error as Error).stack ?? String(error)
  }
}

/**
 * Ends the orders with which the hub cannot go on, so that all others are served (I8): what they have not got is paid
 * back. False where the steps are of no order: the hub takes none before something else happens.
 */
function setAside(context: Context, steps: readonly Step[], why: string): boolean {
  const ids = [...new Set(steps.flatMap((step) => ('orderId' in step ? step.orderId : [])))]
  const orders = ids.filter((id) => context.state.orders.find(id)?.ended_at === null)
  context.log.error({ orders, steps, why }, 'the hub cannot go on with these')
  for (const id of orders) endOrder(context, id, 'failed', 'undecided')
  return orders.length > 0
}

/** The next thing for the hub to do, of all its orders and bins. */
function nextStep(context: Context, bins: readonly BinView[], blocks: BlockedRows): Step | Wait {
  const cycle = cyclesStep(context)
  if (cycle) return cycle
  const world = viewOrders(context, bins, blocks)
  return firstOf([
    ordersStep(world),
    ...bins.map((bin) => {
      const order = world.orders.find((each) => each.id === bin.orderId)
      return binStep(bin, order?.openWhenReady ?? false, context.settings)
    }),
  ])
}

/** Carries out one step: rows, ledger entries and intents, in the transaction under way. */
function carryOut(context: Context, step: Step): void {
  const { bins, orders } = context.state
  switch (step.kind) {
    case 'prepare':
      return prepareOrder(context, step.orderId, step.bins)
    case 'hold':
      return bins.hold(step.bin, step.orderId)
    case 'release':
      return bins.release(step.bin)
    case 'move': {
      const { bin, action, commandId, isTrial } = step
      if (isTrial) bins.change(bin, { on_trial: true })
      return intend(context, {
        device: binDevice(bin),
        action,
        ...(commandId !== undefined && { commandId }),
      })
    }
    case 'dispense':
      return dispenseUnit(context, step)
    case 'elsewhere': {
      const { orderId: order_id, lineId: line_id, unit } = step
      return orders.setUnit({ order_id, line_id, unit }, 'waiting', null)
    }
    case 'short': {
      const { orderId: order_id, lineId: line_id, unit } = step
      return orders.setUnit({ order_id, line_id, unit }, 'short', null)
    }
    case 'ready':
      return readyOrder(context, step.orderId, step.bins)
    case 'opened':
      return void bins.change(step.bin, { opened: true })
    case 'collecting':
      return collectOrder(context, step.orderId)
    case 'give_up':
      return giveUpRunning(context, step.orderId)
    case 'end':
      return endOrder(context, step.orderId, step.phase, step.reason)
    case 'recover':
      return recoverOrder(context, step.orderId)
  }
}
