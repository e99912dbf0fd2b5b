import type { Cancel } from '../../protocol/model/runtime.ts'
import { StorageError } from '../journal/storage-error.ts'
import { watchFirmware } from './firmware.ts'
import { isMachineFault } from '../journal/store.ts'
import { binDevice } from './layout.ts'
import { binStep, viewBins, type BinView } from './bins/bin.ts'
import { cyclesStep } from './bins/cycles.ts'
import { isWithoutCabinets, startUpGraceMs, type Context } from './context.ts'
import { watchStore, watchHardware } from './housekeeping.ts'
import { askOverdue, intend } from './operations/intend.ts'
import { giveUpRunning } from './operations/outcomes.ts'
import { ordersStep } from './orders/order-step.ts'
import { viewOrders } from './orders/order-view.ts'
import { collectOrder, dispenseUnit, endOrder, prepareOrder, readyOrder } from './orders/orders.ts'
import { recoverOrder } from './recovery/orders.ts'
import { noteFridgeDoors, watchFridges } from './fridges.ts'
import { reportStates } from './states.ts'
import { earliest, firstOf, wait, type Step, type Wait } from './step.ts'
import { blockedRows, type BlockedRows } from './blocked-rows.ts'
import { waitAgain } from './wanted-units.ts'

/**
 * The hub's core as an actor. It handles one event at a time, in one transaction with all steps that follow
 * from it. Effects run after the commit; their results arrive as new events.
 */
interface Actor {
  /**
   * Handles one event: `work` writes it to the journal. Returns false if the storage fails; then the
   * transaction is rolled back, and the hub retries its steps after `fullRetryMs`.
   */
  handle: (work: () => void) => boolean
  /**
   * Handles an event that its source does not repeat. If the storage fails, the event waits in memory. Waiting events are
   * handled in their order at the next such event, or after `fullRetryMs`. An event with a `key` reads the present state, so
   * it does not wait a second time under the same key.
   */
  handleUnrepeated: (work: () => void, key?: string) => void
  /** Milliseconds since the last handled event, or since the start if there was none. */
  quietMs(): number
  stop(): void
}

/** The maximum number of events that wait in memory. */
const MAX_WAITING = 1000

const MAX_SLEEP_MS = 60 * 60_000

/** `onHandled` is called after the commit of each event, and after the rollback of one that finds no space. */
export function createActor(context: () => Context, onHandled: () => void): Actor {
  let cancelWake: Cancel | undefined
  let cancelReport: Cancel | undefined
  let isStopped = false
  let handledAt: number | undefined
  /** Events that their sources do not repeat, in their order. The storage failed when they arrived. */
  let waiting: { work: () => void; key: string | undefined }[] = []

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

  function handleUnrepeated(work: () => void, key?: string): void {
    const isFirst = waiting.length === 0
    if (isFirst && handle(work)) return
    if (key === undefined || !waiting.some((event) => event.key === key)) waiting.push({ work, key })
    if (waiting.length > MAX_WAITING) {
      waiting.shift()
      context().log.error({}, 'the storage fails for long: an event is lost')
    }
    if (!isFirst) handleWaiting()
  }

  /** Other events do not wait for these: events without a write are handled also on a full disk. */
  function handleWaiting(): void {
    const events = waiting
    if (events.length === 0) return
    waiting = []
    if (!handle(() => events.forEach(({ work }) => applyWaiting(work)))) waiting = [...events, ...waiting]
  }

  /** An event that can never be applied must not hold up all later events. */
  function applyWaiting(work: () => void): void {
    const failed = tryPart(context(), work)
    if (failed !== undefined) context().log.error({ why: failed }, 'an event that waited cannot be applied')
  }

  /** Retries every `fullRetryMs` until the storage works. No other event may arrive that would trigger it. */
  function tryAgain(): void {
    const { store, runtime, settings } = context()
    if (isStopped) return
    cancelReport ??= runtime.clock.after(settings.fullRetryMs, () => {
      cancelReport = undefined
      store.relieve()
      handle(() => watchStore(context()))
      handleWaiting()
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
    handleUnrepeated,
    quietMs: () => context().runtime.clock.monotonic() - (handledAt ?? 0),
    stop() {
      isStopped = true
      cancelWake?.()
      cancelReport?.()
    },
  }
}

/** Carries out steps until the hub can only wait. Returns the milliseconds until time alone requires a step, if any. */
function takeSteps(context: Context): number | undefined {
  // Judged before any step: earlier judgements are lost if the storage failed meanwhile.
  const fridges = watchFridges(context)
  const taken: string[] = []
  for (;;) {
    const bins = viewBins(context)
    const blocks = blockedRows(context)
    const step = nextStep(context, bins, blocks)
    if (step.kind === 'wait') {
      reportOwedSnapshot(context)
      const ajar = noteFridgeDoors(context)
      const hardware = watchHardware(context)
      const firmware = watchFirmware(context)
      const reported = reportStates(context, bins, blocks)
      return earliest([
        step.ms,
        askOverdue(context),
        startUpGraceMs(context) || undefined,
        fridges,
        ajar,
        hardware,
        firmware,
        reported,
      ])
    }
    const key = JSON.stringify(step)
    const first = taken.indexOf(key)
    taken.push(key)
    // A step that is due twice in one event has changed nothing, and would repeat without end.
    const circle = first < 0 ? [] : taken.slice(first).map((each) => JSON.parse(each) as Step)
    const failed =
      first < 0 ? tryPart(context, () => carryOut(context, step)) : 'the decisions go round in a circle'
    if (failed !== undefined && !setAside(context, [step, ...circle], failed)) return undefined
  }
}

/**
 * Reports the snapshot that the ledger's epoch began without. The hub's stock is known once its cabinets have
 * connected.
 */
function reportOwedSnapshot(context: Context): void {
  const { state, ledger } = context
  if (!state.facts.get('owes_snapshot') || !state.facts.get('live')) return
  if (startUpGraceMs(context) === 0 && !isWithoutCabinets(context)) ledger.reportSnapshot()
}

/** Returns why a part of the event can never be carried out; undefined on success. Faults of the machine are rethrown. */
function tryPart(context: Context, work: () => void): string | undefined {
  try {
    context.store.savepoint(work)
    return undefined
  } catch (error) {
    if (isMachineFault(error)) throw error
    return (error as Error).stack ?? String(error)
  }
}

/**
 * Ends the orders that the hub cannot continue, so that all others are served (I8). Undelivered units are
 * refunded. Returns false if the steps belong to no order: then the hub takes no step until another event.
 */
function setAside(context: Context, steps: readonly Step[], why: string): boolean {
  const ids = [...new Set(steps.flatMap((step) => ('orderId' in step ? step.orderId : [])))]
  const orders = ids.filter((id) => context.state.orders.find(id)?.ended_at === null)
  context.log.error({ orders, steps, why }, 'the hub cannot go on with these')
  for (const id of orders) endOrder(context, id, 'failed', 'undecided')
  return orders.length > 0
}

/** The next step for all orders and bins. */
function nextStep(context: Context, bins: readonly BinView[], blocks: BlockedRows): Step | Wait {
  if (context.isOnTrial?.()) return wait()
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

/** Carries out one step: rows, ledger entries and intents, in the current transaction. */
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
      return waitAgain(context.state, { order_id, line_id, unit })
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
