import type { CloudEntry } from '../../../protocol/mqtt/cloud-entries.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import type { OperationRow } from '../../journal/operations.ts'
import type { UnitRow } from '../../journal/orders.ts'
import { doubtUnits } from './doubts.ts'
import { giveUpRunning } from '../operations/give-up.ts'
import type { Context } from '../context.ts'
import { progressOf } from '../ledger.ts'
import { acceptOrder, isOwn } from '../orders/orders.ts'
import { applyCount, applyPlanogram, bookDrop } from '../stock.ts'
import { placeOf } from '../layout.ts'

export type Snapshot = Extract<CloudEntry, { kind: 'snapshot' }>

/**
 * Takes up the cloud's snapshot. A hub with a store of its own knows its stock and orders better, and takes only what the
 * cloud decides. A hub without takes everything, and corrects it by what its controllers remember.
 */
export function applySnapshot(context: Context, snapshot: Snapshot): void {
  const { journal, ledger } = context
  journal.meta.setConfig(snapshot.config)
  if (journal.meta.isLive()) {
    applyPlanogram(context, snapshot.facings)
    for (const entry of snapshot.orders) takeOrder(context, entry)
    takeCounts(context, snapshot)
    return
  }
  takeStock(context, snapshot)
  journal.adoptions.setKnownOperations(snapshot.known_operations)
  journal.meta.setLive(true)
  ledger.reportSnapshot()
  for (const entry of snapshot.orders) takeOrder(context, entry)
  accountImported(context)
  takeCounts(context, snapshot)
}

/** Counts whose own entries went with the former epoch of the cloud's stream; those that came already change nothing. */
function takeCounts(context: Context, { counts = [] }: Snapshot): void {
  for (const count of counts)
    if (context.journal.stock.ofProduct(count.product_id).length > 0) applyCount(context, count)
}

function takeStock({ journal, cloud }: Context, snapshot: Snapshot): void {
  journal.stock.deleteAll()
  for (const { location, product_id, primary } of snapshot.facings)
    journal.stock.putFacing(location, product_id, primary)
  for (const { location, product_id, quantity } of snapshot.stock) {
    if (!journal.stock.facing(location)) journal.stock.putFacing(location, product_id, false)
    journal.stock.change({
      kind: 'snapshot',
      location,
      delta: quantity,
      causeId: 'snapshot',
      at: cloud.now(),
    })
  }
}

/**
 * An order of the snapshot. It is new to this store only where it was queued for it and has not begun; any other may
 * have been worked on in an earlier life.
 */
function takeOrder(context: Context, { order, status, lines }: Snapshot['orders'][number]): void {
  const { journal, cloud } = context
  if (journal.orders.find(order.order_id)) return
  if (isOwn(context, order) && status === OrderStatus.QUEUED) {
    acceptOrder(context, order, 'queued')
    return
  }
  const bins = [...new Set(lines.flatMap((line) => line.bins))].toSorted((a, b) => a - b)
  const dropped = new Map(lines.map((line) => [line.line_id, line.dropped]))
  acceptOrder(context, order, 'inherited', { bins, dropped })
  if (status < OrderStatus.READY) return
  // What is in its bins was reported: only the customer has yet to come.
  completeUnits(context, order.order_id, 'short')
  for (const bin of bins) journal.bins.hold(bin, order.order_id)
  journal.orders.setReady(order.order_id, cloud.now(), bins)
  if (status < OrderStatus.COLLECTING) return
  journal.orders.setCollecting(order.order_id, cloud.now())
  for (const bin of bins) journal.bins.setOpened(bin, true)
}

/** Brings what controllers remember, and the cloud's stock does not include yet, into the books. */
export function accountImported(context: Context): void {
  for (const operation of context.journal.operations.imported()) account(context, operation)
}

function account(context: Context, imported: OperationRow): void {
  const { journal, ledger } = context
  const isKnown = journal.adoptions.isKnownOperation(imported.id)
  const unit = inheritedUnit(context, imported)
  const place = placeOf(imported)
  const operation: OperationRow = {
    ...imported,
    // What the cloud counts as settled is not asked for again.
    state: imported.state === 'unknown' && isKnown ? 'settled' : imported.state,
    order_id: unit?.order_id ?? null,
    line_id: unit?.line_id ?? null,
    unit: unit?.unit ?? null,
    product_id: (place && journal.stock.facing(place)?.product_id) ?? null,
  }
  journal.operations.account(operation)
  if (operation.action !== 'dispense') return
  switch (operation.state) {
    case 'done':
      if (unit) journal.orders.setUnit(unit, 'dropped', operation.bin)
      if (isKnown) return
      if (unit) journal.orders.addKnownDropped(unit.order_id, unit.line_id)
      bookDrop(context, { ...operation, drops: 0 }, operation.drops, unit ? 1 : 0)
      return
    case 'unknown':
      if (unit) journal.orders.setUnit(unit, 'doubtful', operation.bin)
      ledger.report({
        kind: 'operation.unknown',
        operation_id: operation.id,
        device: operation.device,
        action: operation.action,
        reason: operation.why ?? 'unknown',
        order_id: operation.order_id,
        line_id: operation.line_id,
        product_id: operation.product_id,
      })
      return
    case 'open':
      if (unit) journal.orders.setUnit(unit, 'running', operation.bin)
      return
    case 'nothing':
    case 'failed':
    case 'settled':
      return
  }
}

/** The unit that an operation was for, where its order is one of this hub's inherited ones. */
function inheritedUnit({ journal }: Context, { ref, action }: OperationRow): UnitRow | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)$/.exec(ref ?? '')
  if (!match || action !== 'dispense') return undefined
  const [orderId, lineId, unit] = match.slice(1).map(Number)
  if (journal.orders.find(orderId!)?.phase !== 'inherited') return undefined
  return journal.orders.units(orderId!).find((each) => each.line_id === lineId && each.unit === unit)
}

/**
 * Ends the search for what became of an inherited order: what is accounted for goes to the customer, of the rest nobody
 * knows, and its money goes back.
 */
export function inherit(context: Context, orderId: number): void {
  const { journal, cloud, ledger } = context
  const order = journal.orders.find(orderId)
  if (!order) return
  giveUpRunning(context, orderId)
  completeUnits(context, orderId, 'doubtful')
  doubtUnits(context, orderId)
  const units = journal.orders.units(orderId)
  if (!units.some((unit) => unit.state === 'dropped')) {
    const reason = 'hub_replaced'
    journal.orders.end(orderId, 'failed', cloud.now(), reason)
    const lines = progressOf(journal, orderId)
    ledger.report({ kind: 'order.failed', order_id: orderId, reason, bins: [], lines })
    return
  }
  const fallen = units.filter((unit) => unit.state === 'dropped').flatMap((unit) => unit.bin ?? [])
  const bins = [...new Set([...fallen, ...(JSON.parse(order.bins) as number[])])].toSorted((a, b) => a - b)
  for (const bin of bins) journal.bins.hold(bin, orderId)
  journal.orders.prepare(orderId, cloud.now(), bins)
  ledger.report({ kind: 'order.preparing', order_id: orderId, bins })
}

/** Counts the units as dropped that the cloud knows of and no operation in memory explains; `rest` are the others. */
function completeUnits({ journal }: Context, orderId: number, rest: 'doubtful' | 'short'): void {
  const [firstBin] = JSON.parse(journal.orders.find(orderId)?.bins ?? '[]') as number[]
  for (const line of journal.orders.lines(orderId)) {
    const mine = journal.orders.units(orderId).filter((unit) => unit.line_id === line.line_id)
    let known = line.known_dropped - mine.filter((unit) => unit.state === 'dropped').length
    for (const unit of mine) {
      if (unit.state !== 'waiting') continue
      if (known-- > 0) journal.orders.setUnit(unit, 'dropped', firstBin ?? null)
      else journal.orders.setUnit(unit, rest, null)
    }
  }
}
