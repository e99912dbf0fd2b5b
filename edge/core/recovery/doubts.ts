import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { FacingRow } from '../../journal/stock.ts'
import type { UnitRow } from '../../journal/orders.ts'
import type { Context } from '../context.ts'
import { cabinetDevice, isAt } from '../layout.ts'

/**
 * Units of an inherited order that no memory accounts for. Where every memory reaches back far enough they provably never
 * fell. Where one does not, nobody knows whether an earlier life dispensed them, nor from which facing: an operation of
 * unknown outcome stands for that at each, until a count settles it (I1, I5).
 */
export function doubtUnits(context: Context, orderId: number): void {
  const { journal } = context
  const products = new Map(journal.orders.lines(orderId).map((line) => [line.line_id, line.product_id]))
  for (const unit of journal.orders.units(orderId)) {
    if (unit.state !== 'doubtful' || isExplained(context, unit)) continue
    const facings = journal.stock.ofProduct(products.get(unit.line_id) ?? 0)
    const silent = facings.filter((facing) => facing.quantity > 0 && !remembersAll(context, facing))
    if (silent.length === 0) journal.orders.setUnit(unit, 'short', null)
    for (const facing of silent) doubtFacing(context, facing, unit)
  }
}

const isExplained = ({ journal }: Context, unit: UnitRow): boolean =>
  journal.operations
    .ofUnit(unit.order_id, unit.line_id, unit.unit)
    .some((operation) => operation.state === 'unknown')

function remembersAll({ journal, layout }: Context, facing: FacingRow): boolean {
  const controller = layout.controllerOf(cabinetDevice(facing.cabinet))
  const known = controller === undefined ? undefined : journal.adoptions.find(controller)
  return known?.adopted === 1 && known.continuous === 1
}

function doubtFacing(context: Context, facing: FacingRow, unit: UnitRow): void {
  const { journal, ledger, runtime, layout, settings, cloud } = context
  const device = cabinetDevice(facing.cabinet)
  const doubted = journal.operations.unknown().filter((operation) => isAt(operation, facing)).length
  if (doubted >= facing.quantity) return
  const id = uuidv7(runtime)
  const reason = 'hub_replaced'
  journal.operations.insert({
    id,
    controller: layout.controllerOf(device) ?? '',
    device,
    action: 'dispense',
    max_ms: settings.maxMs.dispense,
    shelf: facing.shelf,
    row: facing.row,
    bin: null,
    ref: `${unit.order_id}.${unit.line_id}.${unit.unit}`,
    memory_id: null,
    state: 'unknown',
    why: reason,
    moved: 1,
    drops: 0,
    ms: 0,
    // It stands for what may have been, at any of the facings: the unit itself is told of in its order's lines.
    order_id: null,
    line_id: null,
    unit: null,
    product_id: facing.product_id,
    command_id: null,
    imported: 0,
    intent_at: cloud.now(),
    ended_at: cloud.now(),
  })
  ledger.report({
    kind: 'operation.unknown',
    operation_id: id,
    device,
    action: 'dispense',
    reason,
    order_id: null,
    line_id: null,
    product_id: facing.product_id,
  })
}
