import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { CloudEntry, QueuedOrder } from '../../../protocol/mqtt/cloud-entries.ts'
import type { LeaveOut } from '../../journal/inbox.ts'
import type { UnitRow } from '../../journal/state.ts'
import type { FacingRow, OperationRow } from '../../journal/tables.ts'
import type { Context } from '../context.ts'
import { applyConfig } from '../fridges.ts'
import { cabinetDevice, isAt, placeOf } from '../layout.ts'
import { reportUnknown } from '../ledger.ts'
import { doubtOfDrops, reportDoubt, TOO_MANY_DROPS } from '../operations/drop-count.ts'
import { newOperationId, refOf, unitOfRef } from '../operations/intend.ts'
import { giveUpRunning } from '../operations/outcomes.ts'
import {
  acceptOrder,
  endOrder,
  isOwn,
  prepareOrder,
  reduceOrder,
  reportPhase,
  withdrawOrder,
} from '../orders/orders.ts'
import { applyCount, applyPlanogram, bookDrop, countedFacings } from '../stock.ts'
import { reportAcceptance } from '../acceptance/protocol.ts'

/** Reason of failed orders and unknown operations that an earlier store of this hub may have carried out. */
const REPLACED = 'hub_replaced'

export type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/**
 * Applies the cloud's snapshot. A hub with its own store knows its stock and orders better, and takes only
 * the cloud's decisions. A hub without a store takes everything, and corrects it by its controllers'
 * memories.
 */
export function applySnapshot(context: Context, snapshot: Snapshot, leaveOut: LeaveOut): void {
  const { state, ledger } = context
  applyConfig(context, snapshot.config)
  if (state.facts.get('live')) {
    applyPlanogram(context, snapshot.facings, snapshot.products)
    takeOrders(context, snapshot, leaveOut)
    withdrawUnnamed(context, snapshot)
    takeCounts(context, snapshot)
    return
  }
  takeStock(context, snapshot)
  state.knownOperations.remove()
  for (const id of new Set(snapshot.known_operations)) state.knownOperations.add({ id })
  state.facts.set('live', true)
  ledger.reportSnapshot('new')
  takeOrders(context, snapshot, leaveOut)
  accountImported(context)
  takeCounts(context, snapshot)
}

/**
 * Withdraws orders that the snapshot does not contain, whether or not they have started. There are two causes:
 * - The cloud has ended them; the snapshot replaces that entry.
 * - The cloud was restored to a time before their sale, so no customer could collect them.
 */
function withdrawUnnamed(context: Context, snapshot: Snapshot): void {
  const named = new Set(snapshot.orders.map(({ order }) => order.order_id))
  for (const { id, order_number } of context.state.orders.unfinished()) {
    if (named.has(id)) continue
    context.log.warn(
      { order: id, number: order_number },
      'the cloud does not know this order: it is withdrawn',
    )
    withdrawOrder(context, id)
  }
}

/**
 * Applies counts whose own entries were lost with the former epoch of the cloud's stream. Counts that were
 * applied before change nothing. A count of a row that now has another product is outdated, and must not
 * block the snapshot.
 */
function takeCounts(context: Context, { counts = [] }: Snapshot): void {
  for (const count of counts) if (countedFacings(context, count).length > 0) applyCount(context, count)
}

function takeStock({ state, cloud }: Context, snapshot: Snapshot): void {
  state.stock.clear()
  if (snapshot.products) state.stock.setProducts(snapshot.products)
  for (const { location, product_id, primary } of snapshot.facings)
    state.stock.putFacing(location, product_id, primary)
  for (const { location, product_id, quantity } of snapshot.stock) {
    if (!state.stock.facings.find(location)) state.stock.putFacing(location, product_id, false)
    state.stock.change({
      kind: 'snapshot',
      location,
      delta: quantity,
      causeId: 'snapshot',
      at: cloud.now(),
    })
  }
}

/**
 * Takes the orders of the snapshot, the newest started order first. An order starts in empty bins. So a bin
 * that two orders name contains the units of the newer order.
 */
function takeOrders(context: Context, { orders }: Snapshot, leaveOut: LeaveOut): void {
  const hasStarted = ({ status }: Snapshot['orders'][number]): boolean => status > OrderStatus.QUEUED
  const started = orders.filter(hasStarted).toReversed()
  for (const entry of [...started, ...orders.filter((each) => !hasStarted(each))])
    takeOrder(context, entry, leaveOut)
}

/**
 * Takes an order of the snapshot, reduced by its refunds since it was queued. An order that cannot be taken
 * must not block other orders, stock or configuration (I8).
 */
function takeOrder(context: Context, entry: Snapshot['orders'][number], leaveOut: LeaveOut): void {
  const { order, lines } = entry
  try {
    context.store.savepoint(() => {
      takeUpOrder(context, entry)
      reduceOrder(context, order.order_id, lines)
    })
  } catch (error) {
    leaveOut({ kind: 'order.queued', order }, error)
  }
}

/**
 * Takes an order of the snapshot. It is new only if it was queued for this store and has not started. An
 * earlier process may have worked on any other order.
 */
function takeUpOrder(context: Context, { order, status, lines }: Snapshot['orders'][number]): void {
  const { state, cloud } = context
  if (state.orders.find(order.order_id)) return
  if (isOwn(context, order) && status === OrderStatus.QUEUED) {
    acceptOrder(context, order, 'queued')
    return
  }
  const bins = [...new Set(lines.flatMap((line) => line.bins))].toSorted((a, b) => a - b)
  const dropped = new Map(lines.map((line) => [line.line_id, line.dropped]))
  acceptRecovering(context, order, { bins, dropped })
  if (status < OrderStatus.READY) return
  // The contents of its bins were reported: only the customer has to come.
  completeUnits(context, order.order_id, 'short')
  doubtLost(context, order.order_id)
  const held = state.bins.ofOrder(order.order_id).map(({ number }) => number)
  state.orders.change(order.order_id, { phase: 'ready', ready_at: cloud.now(), bins: held })
  if (status < OrderStatus.COLLECTING) return
  state.orders.change(order.order_id, { phase: 'collecting', collecting_at: cloud.now() })
  for (const bin of held) state.bins.change(bin, { opened: true })
}

/**
 * Accepts an order that an earlier store of this hub may have worked on. Its operations may already be
 * imported: the cloud counted the order as finished when this store was new, and was then restored to an
 * earlier time.
 */
export function acceptRecovering(
  context: Context,
  order: QueuedOrder,
  known: { bins: number[]; dropped: ReadonlyMap<number, number> },
): void {
  const { state } = context
  if (state.orders.find(order.order_id)) return
  acceptOrder(context, order, 'recovering', known)
  reserveBins(context, order.order_id, known.bins)
  for (const unit of state.orders.units(order.order_id))
    for (const operation of state.operations.ofNote(refOf(unit))) {
      const { order_id, line_id, unit: number } = unit
      state.operations.change(operation.id, { order_id, line_id, unit: number })
      claimUnit(context, unit, operation)
    }
}

/**
 * Reserves bins that may contain units of a recovering order. A bin of another order stays with that order: it
 * was empty when that order started.
 */
function reserveBins({ state: { bins } }: Context, orderId: string, numbers: readonly number[]): void {
  for (const bin of bins.freeFor(orderId, numbers)) bins.hold(bin, orderId)
}

/** Sets a recovering order's unit by the outcome of its operation. */
function claimUnit(context: Context, unit: UnitRow, operation: OperationRow): void {
  const { orders } = context.state
  const { state: phase, bin } = operation
  const mayContain = phase === 'done' || phase === 'unknown' || phase === 'open'
  if (bin !== null && mayContain) reserveBins(context, unit.order_id, [bin])
  if (phase === 'done') orders.setUnit(unit, 'dropped', bin)
  if (phase === 'unknown') orders.setUnit(unit, 'doubtful', bin)
  if (phase === 'open') orders.setUnit(unit, 'running', bin)
}

/** Books the imported operations that the cloud's stock does not include yet. */
export function accountImported(context: Context): void {
  for (const operation of context.state.operations.imported()) account(context, operation)
}

function account(context: Context, imported: OperationRow): void {
  const { state } = context
  const isKnown = state.knownOperations.value('1', 'WHERE id = ?', imported.id) !== null
  const unit = recoveringUnit(context, imported)
  const place = placeOf(imported)
  // The bin may have been emptied since.
  const doubt = isKnown ? undefined : doubtOfDrops(context, { ...imported, drops: 0, bin: null }, imported)
  if (doubt !== undefined) reportDoubt(context, imported, doubt)
  const operation = state.operations.change(imported.id, {
    imported: false,
    ...(doubt !== undefined && { state: 'unknown', why: TOO_MANY_DROPS, drops: 0 }),
    // The cloud counts this operation as resolved, so a person is not asked again.
    ...(imported.state === 'unknown' && isKnown && { state: 'settled' }),
    order_id: unit?.order_id ?? null,
    line_id: unit?.line_id ?? null,
    unit: unit?.unit ?? null,
    product_id: (place && state.stock.facings.find(place)?.product_id) ?? null,
  })
  if (!isKnown) reportOutcome(context, operation)
  if (operation.action !== 'dispense') return
  if (unit) claimUnit(context, unit, operation)
  switch (operation.state) {
    case 'done':
      if (isKnown) return
      if (unit) state.orders.addKnownDropped(unit.order_id, unit.line_id)
      bookDrop(context, { ...operation, drops: 0 }, operation.drops, unit ? 1 : 0)
      return
    case 'unknown':
      reportUnknown(context, operation)
      return
    case 'open':
    case 'nothing':
    case 'failed':
    case 'settled':
      return
  }
}

/** Reports an operation's outcome to the cloud: the previous store may have reported it as unknown. */
function reportOutcome({ ledger }: Context, { id, state }: OperationRow): void {
  if (state !== 'done' && state !== 'nothing' && state !== 'failed') return
  ledger.report({
    kind: 'operation.settled',
    operation_id: id,
    by: 'sensor',
    happened: state === 'done',
  })
}

/** The unit of an operation, if this hub recovers its order. */
function recoveringUnit({ state }: Context, { ref, action }: OperationRow): UnitRow | undefined {
  const key = action === 'dispense' ? unitOfRef(ref ?? '') : undefined
  if (!key || state.orders.find(key.order_id)?.phase !== 'recovering') return undefined
  return state.orders
    .units(key.order_id)
    .find((each) => each.line_id === key.line_id && each.unit === key.unit)
}

/**
 * Ends the recovery of an order. Units that are accounted for go to the customer. The others are unconfirmed,
 * and are refunded.
 */
export function recoverOrder(context: Context, orderId: string): void {
  const { state } = context
  if (!state.orders.find(orderId)) return
  giveUpRunning(context, orderId)
  completeUnits(context, orderId, 'doubtful')
  markUnconfirmed(context, orderId)
  doubtLost(context, orderId)
  const dropped = state.orders.units(orderId).filter((unit) => unit.state === 'dropped')
  if (dropped.length === 0) return endOrder(context, orderId, 'failed', REPLACED)
  prepareOrder(
    context,
    orderId,
    state.bins.ofOrder(orderId).map(({ number }) => number),
  )
}

/**
 * Units in a bin that is not the order's are doubtful: the customer cannot get them. Another order holds the
 * bin, or the hub does not have it any more.
 */
function doubtLost(context: Context, orderId: string): void {
  const { state } = context
  const { bins } = state.orders.find(orderId)!
  const units = state.orders.units(orderId)
  // An earlier version of the service reserved no bins for a recovering order.
  reserveBins(context, orderId, [...bins, ...units.flatMap(({ bin }) => bin ?? [])])
  const held = new Set(state.bins.ofOrder(orderId).map(({ number }) => number))
  for (const unit of units)
    if ((unit.state === 'dropped' || unit.state === 'doubtful') && !held.has(unit.bin ?? 0))
      state.orders.setUnit(unit, 'doubtful', null)
}

/**
 * Marks units as dropped that the cloud knows and no operation in a memory explains. `rest`: the state of the
 * others.
 */
function completeUnits({ state }: Context, orderId: string, rest: 'doubtful' | 'short'): void {
  const {
    bins: [firstBin],
    lines,
  } = state.orders.find(orderId)!
  for (const line of lines) {
    const mine = state.orders.units(orderId).filter((unit) => unit.line_id === line.line_id)
    let known = line.known_dropped - mine.filter((unit) => unit.state === 'dropped').length
    for (const unit of mine) {
      if (unit.state !== 'waiting') continue
      if (known-- > 0) state.orders.setUnit(unit, 'dropped', firstBin ?? null)
      else state.orders.setUnit(unit, rest, null)
    }
  }
}

/**
 * Units of a recovered order that no memory accounts for. If every memory reaches back far enough, they
 * provably never fell. Otherwise an earlier process may have dispensed them, from an unknown facing. Each
 * possible facing then gets an operation of unknown outcome, until a count resolves it (I1, I5).
 */
function markUnconfirmed(context: Context, orderId: string): void {
  const { state } = context
  const products = new Map(
    (state.orders.find(orderId)?.lines ?? []).map((line) => [line.line_id, line.product_id]),
  )
  for (const unit of state.orders.units(orderId)) {
    if (unit.state !== 'doubtful' || isExplained(context, unit)) continue
    const facings = state.stock.ofProduct(products.get(unit.line_id) ?? 0)
    const silent = facings.filter((facing) => facing.quantity > 0 && !remembersAll(context, facing))
    if (silent.length === 0) state.orders.setUnit(unit, 'short', null)
    for (const facing of silent) markFacing(context, facing, unit)
  }
}

const isExplained = ({ state }: Context, unit: UnitRow): boolean =>
  state.operations.ofUnit(unit).some((operation) => operation.state === 'unknown')

function remembersAll({ state, layout }: Context, facing: FacingRow): boolean {
  const controller = layout.controllerOf(cabinetDevice(facing.cabinet))
  const known = controller === undefined ? undefined : state.controllers.find(controller)
  return known?.reconciled === true && known.continuous
}

function markFacing(context: Context, facing: FacingRow, unit: UnitRow): void {
  const { state, layout, settings, cloud } = context
  const doubted = state.operations.unknown().filter((operation) => isAt(operation, facing)).length
  if (doubted >= facing.quantity) return
  const device = cabinetDevice(facing.cabinet)
  const operation = {
    id: newOperationId(context),
    device,
    action: 'dispense',
    why: REPLACED,
    shelf: facing.shelf,
    row: facing.row,
    // The operation represents a possible dispense at any of the facings. The order's lines report the unit
    // itself.
    order_id: null,
    line_id: null,
    product_id: facing.product_id,
    intent_at: cloud.now(),
  } as const
  state.operations.add({
    ...operation,
    controller: layout.controllerOf(device) ?? '',
    max_ms: settings.maxMs.dispense,
    ref: refOf(unit),
    state: 'unknown',
    ended_at: cloud.now(),
  })
  reportUnknown(context, operation)
}

/**
 * Repeats recent reports on orders, operations and acceptances after the snapshot of a new epoch. The cloud
 * may have been restored to an earlier time and have lost reports that the hub deleted after their
 * acknowledgement. A cloud that lost nothing ignores the repetitions.
 */
export function reportAgain(context: Context): void {
  const { state, settings, cloud } = context
  const since = cloud.now() - settings.reportAgainMs
  for (const operation of state.operations.unknown()) reportUnknown(context, operation)
  for (const operation of state.operations.settledSince(since)) reportSettled(context, operation)
  for (const order of state.orders.since(since)) {
    if (order.ready_at !== null && order.phase !== 'ready') reportPhase(context, { ...order, phase: 'ready' })
    reportPhase(context, order)
  }
  for (const { id, ended_at } of state.acceptances.list())
    if ((ended_at ?? 0) >= since) reportAcceptance(context, id)
}

function reportSettled({ ledger }: Context, { id, settled_by, happened }: OperationRow): void {
  if (settled_by === null || happened === null) return
  ledger.report({
    kind: 'operation.settled',
    operation_id: id,
    by: settled_by,
    happened: happened,
  })
}
