import { countProblem, restockProblem } from '../../protocol/model/counting.ts'
import { storageSentence, storageText, type StorageFault } from '../../protocol/model/storage.ts'
import { locationKey, type Location } from '../../protocol/model/location.ts'
import type { LocalActor } from '../../protocol/mqtt/hub-entries.ts'
import {
  binSubject,
  controllerSubject,
  deviceSubject,
  doorSubject,
  fridgeSubject,
  HUB_SUBJECT,
  rowSubject,
} from '../../protocol/model/subject.ts'
import type { Context } from './context.ts'
import { unlockDoor, type Unlocking } from './doors/doors.ts'
import { confirmFridge, shutFridges } from './fridges.ts'
import type { Entered, LocalOutcome, LocalRefusal } from './hub-core.ts'
import type {
  AlarmSummary,
  DeadLetterSummary,
  FacingStock,
  OrderSummary,
  UnknownOperation,
} from './summaries.ts'
import { settleManually } from './operations/outcomes.ts'
import { progressOf } from './orders/orders.ts'
import { takeOver } from './recovery/controllers.ts'
import { reportLocal, setAlarm } from './ledger.ts'
import { countFacing, restockFacing } from './stock.ts'
import { placeOf } from './layout.ts'
import { blockedRows, closedCabinets } from './blocked-rows.ts'

const no = (reason: LocalRefusal): LocalOutcome => ({ ok: false, reason })

/** Books an action of a person with its report to the cloud. */
function book(
  context: Context,
  action: string,
  subject: string,
  facts: Parameters<typeof reportLocal>[3],
  work: () => void,
): LocalOutcome {
  const isTaken = context.handle(() => {
    work()
    reportLocal(context, action, subject, facts)
  })
  return isTaken ? { ok: true } : no('unavailable')
}

const invalidQuantity = (why: string): LocalOutcome => ({ ok: false, reason: 'invalid_quantity', why })

const countedSince: LocalOutcome = {
  ok: false,
  reason: 'not_now',
  why: 'Somebody has counted this row since then. Count it again.',
}

/** A person resolves an operation of unknown outcome. */
export function settleByPerson(
  context: Context,
  operationId: string,
  happened: boolean,
  by?: LocalActor,
): LocalOutcome {
  const operation = context.state.operations.find(operationId)
  if (!operation) return no('not_found')
  if (operation.state !== 'unknown') return no('not_unknown')
  return book(context, 'settle_operation', deviceSubject(operation.device), { by }, () =>
    settleManually(context, operation, happened),
  )
}

/** A person filled a row, now or `ageMs` ago. A later count of the row includes the units. */
export function restockByPerson(
  context: Context,
  location: Location,
  units: number,
  { by, id, ageMs = 0 }: Entered = {},
): LocalOutcome {
  const { state, layout, cloud } = context
  const facing = state.stock.facings.find(location)
  if (!facing) return no('not_found')
  if (id !== undefined && state.stock.isBooked(id)) return { ok: true }
  const before = facing.quantity
  const problem = restockProblem(units, { quantity: before, capacity: layout.depthOf(location) })
  if (problem !== undefined) return invalidQuantity(problem)
  const at = cloud.now() - ageMs
  if (ageMs > 0 && state.stock.isReplacedAfter(location, at)) return countedSince
  return book(context, 'restock_row', rowSubject(location), { by, before, after: before + units }, () =>
    restockFacing(context, facing, units, { id, at }),
  )
}

/**
 * A person counted a row, now or `ageMs` ago: a page without a network sends its counts later. Units that fell or were
 * added since then are taken into account. A later count of the same row wins.
 */
export function countByPerson(
  context: Context,
  location: Location,
  units: number,
  { by, id, ageMs = 0 }: Entered = {},
): LocalOutcome {
  const { state, layout, cloud } = context
  const facing = state.stock.facings.find(location)
  if (!facing) return no('not_found')
  if (id !== undefined && state.stock.isBooked(id)) return { ok: true }
  const problem = countProblem(units, layout.depthOf(location))
  if (problem !== undefined) return invalidQuantity(problem)
  const countedAt = cloud.now() - ageMs
  if (ageMs > 0 && state.stock.isReplacedAfter(location, countedAt)) return countedSince
  const moved = ageMs > 0 ? state.stock.movedSince(facing.product_id, countedAt, location) : 0
  const [before, after] = [facing.quantity, Math.max(0, units + moved)]
  return book(context, 'count_row', rowSubject(location), { by, before, after }, () =>
    countFacing(context, facing, after, { id, at: countedAt }),
  )
}

/** A person has checked the goods in a fridge. */
export function confirmFridgeByPerson(context: Context, fridge: number, by?: LocalActor): LocalOutcome {
  if (!shutFridges(context).includes(fridge)) return no('not_found')
  return book(context, 'confirm_fridge', fridgeSubject(fridge), { by }, () => confirmFridge(context, fridge))
}

/** A person unlocks a door. Doors also unlock on a full disk. */
export function unlockByPerson(context: Context, door: string, forMs: number, by?: LocalActor): LocalOutcome {
  const outcome = outcomeOf(unlockDoor(context, door, forMs))
  if (outcome.ok)
    context.handleUnrepeated(() => reportLocal(context, 'unlock_door', doorSubject(door), { by }))
  return outcome
}

export function outcomeOf(unlocking: Unlocking): LocalOutcome {
  if (unlocking.ok) return unlocking
  return unlocking.reason === 'fault'
    ? no('unavailable')
    : { ok: false, reason: 'not_now', why: unlocking.why }
}

/** A person takes a bin, or the intake of orders, out of service at the hub itself, or puts it back. */
export function holdByPerson(
  context: Context,
  what: 'orders' | number,
  isHeld: boolean,
  by?: LocalActor,
): LocalOutcome {
  const { state, layout } = context
  if (what !== 'orders' && !layout.bins.some(({ number }) => number === what)) return no('not_found')
  const held = state.facts.get('held')
  const others = held.bins.filter((bin) => bin !== what)
  const verb = isHeld ? 'hold' : 'release'
  if (what === 'orders')
    return book(context, `${verb}_orders`, 'orders', { by }, () =>
      state.facts.set('held', { ...held, orders: isHeld }),
    )
  return book(context, `${verb}_bin`, binSubject(what), { by }, () =>
    state.facts.set('held', { ...held, bins: isHeld ? [...others, what] : others }),
  )
}

/** A person confirms that the board on this line is a spare part for this hub. */
export function takeOverByPerson(context: Context, controller: string, by?: LocalActor): LocalOutcome {
  const otherBoard = context.otherBoards.get(controller)
  if (!otherBoard?.isForeign) return no('not_found')
  if (!takeOver(context, controller, otherBoard)) return no('invalid')
  context.handleUnrepeated(() =>
    reportLocal(context, 'take_over_controller', controllerSubject(controller), { by }),
  )
  return { ok: true }
}

/** A person restarts the service. A full disk does not prevent the restart. */
export const noteRestart = (context: Context, by?: LocalActor): void =>
  context.handleUnrepeated(() => reportLocal(context, 'restart_service', HUB_SUBJECT, { by }))

/** All open alarms, and a current storage failure, which cannot be in the journal. */
export function alarmsOf(context: Context): AlarmSummary[] {
  const { state, store, cloud } = context
  const fault = store.failure()
  context.failingSince = fault && (context.failingSince ?? cloud.now())
  return [...state.alarms.all(), ...(fault ? [storageAlarm(fault, context.failingSince!)] : [])]
}

/** A failure of the storage as the hub's page shows it. `at`: milliseconds since the Unix epoch. */
export const storageAlarm = (fault: StorageFault, at: number): AlarmSummary => ({
  code: storageText(fault.reason).alarm,
  subject: HUB_SUBJECT,
  detail: storageSentence(fault),
  raised_at: at,
})

export const foreignControllers = ({ otherBoards }: Context): string[] =>
  [...otherBoards].flatMap(([controller, { isForeign }]) => (isForeign ? [controller] : []))

export function unknownOperations({ state }: Context): UnknownOperation[] {
  return state.operations.unknown().map((operation) => ({
    operation_id: operation.id,
    device: operation.device,
    action: operation.action,
    location: placeOf(operation) ?? null,
    product_id: operation.product_id,
    order_id: operation.order_id,
    order_number: numberOf(state, operation.order_id),
    line_id: operation.line_id,
    at: operation.intent_at,
  }))
}

const numberOf = ({ orders }: Context['state'], orderId: string | null): number | null =>
  (orderId === null ? undefined : orders.find(orderId)?.order_number) ?? null

const SHOWN_ORDERS = 50

/** Unfinished orders and the last finished ones, newest first. */
export function orderSummaries({ state }: Context): OrderSummary[] {
  return state.orders.newest(SHOWN_ORDERS).map((order) => {
    const progress = new Map(progressOf(state, order.id).map((line) => [line.line_id, line]))
    return {
      order_id: order.id,
      order_number: order.order_number,
      phase: order.phase,
      bins: [...order.bins],
      lines: (state.orders.find(order.id)?.lines ?? []).map(({ line_id, product_id, units }) => ({
        line_id,
        product_id,
        quantity: units.length,
        dropped: progress.get(line_id)?.dropped ?? 0,
        doubtful: progress.get(line_id)?.doubtful ?? 0,
      })),
    }
  })
}

export function stockOf(context: Context): FacingStock[] {
  const blocks = blockedRows(context)
  const closed = closedCabinets(context)
  return context.state.stock.facings
    .all()
    .map(({ product_id, cabinet, shelf, row, is_primary, quantity }) => ({
      product_id,
      name: context.state.stock.product(product_id)?.name ?? null,
      upc: context.state.stock.product(product_id)?.upc ?? null,
      location: { cabinet, shelf, row },
      primary: is_primary,
      quantity,
      capacity: context.layout.depthOf({ cabinet, shelf, row }),
      blocked: blocks.get(locationKey({ cabinet, shelf, row }))?.why ?? closed.get(cabinet) ?? null,
    }))
}

const SHOWN_DEAD_LETTERS = 50
const MAX_DETAIL = 500

/** The alarm stays open while there is a dead letter: a person must check the cloud's entry. */
export function watchDeadLetters(context: Context): void {
  const { deadLetters } = context.state
  const [newest] = deadLetters.list(1)
  const detail = newest ? `${deadLetters.count()} entries of the cloud, the last: ${newest.error}` : ''
  setAlarm(context, 'dead_letter', HUB_SUBJECT, newest !== undefined, detail.slice(0, MAX_DETAIL))
}

export function deadLettersOf({ state }: Context): DeadLetterSummary[] {
  return state.deadLetters
    .list(SHOWN_DEAD_LETTERS)
    .map(({ number: id, body, error, at }) => ({ id, kind: kindOf(body), error, body, at }))
}

function kindOf(body: string): string | null {
  const entry = JSON.parse(body) as { kind?: unknown } | null
  return typeof entry?.kind === 'string' ? entry.kind : null
}

/** Requests a snapshot from the cloud. Old entries may be outdated, so none is applied late. */
export function replayByPerson(context: Context, by?: LocalActor): LocalOutcome {
  if (context.state.deadLetters.count() === 0) return no('not_found')
  return book(context, 'replay_dead_letters', HUB_SUBJECT, { by }, () => context.resetInbox())
}

export function dropByPerson(context: Context, id: number, by?: LocalActor): LocalOutcome {
  if (!context.state.deadLetters.find(id)) return no('not_found')
  return book(context, 'drop_dead_letter', HUB_SUBJECT, { by }, () => {
    context.state.deadLetters.remove('WHERE number = ?', id)
    watchDeadLetters(context)
  })
}
