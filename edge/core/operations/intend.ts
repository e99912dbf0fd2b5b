import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Action } from '../../../protocol/serial/frames.ts'
import type { ActuationRequest } from '../../hardware/controllers.ts'
import type { UnitKey } from '../../journal/state.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context } from '../context.ts'
import { applyNotSent } from './outcomes.ts'

/**
 * The note that a controller keeps with a dispense, by which another store of this hub finds whose it was. The order's id is
 * in base64url there: a note has 40 characters (serial SPEC §1).
 */
export function refOf({ order_id, line_id, unit }: UnitKey): string {
  const order = Buffer.from(order_id.replaceAll('-', ''), 'hex').toString('base64url')
  return `${order}.${line_id}.${unit}`
}

export function unitOfRef(ref: string): UnitKey | undefined {
  const [, order, line_id, unit] = /^([\w-]{22})\.(\d+)\.(\d+)$/.exec(ref) ?? []
  if (order === undefined) return undefined
  const hex = Buffer.from(order, 'base64url').toString('hex')
  const order_id = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join('-')
  return { order_id, line_id: Number(line_id), unit: Number(unit) }
}

const MAX_REF = 40

/** Whether a controller can keep the unit's note, and another store find by it whose it was. */
export function isNotable(unit: UnitKey): boolean {
  const ref = refOf(unit)
  return ref.length <= MAX_REF && unitOfRef(ref)?.line_id === unit.line_id
}

/** What an operation is to do, and for what. */
export interface Intent {
  device: string
  action: Action
  /** Where a unit is dispensed from, the bin that it falls into, what it is where anything stands there, and whose. */
  dispense?: { shelf: number; row: number; bin: number; productId: number | null; unit?: UnitKey }
  commandId?: string
}

/** Journals the intent, in the transaction under way; the command goes out after its commit and not before (I1). */
export function intend(context: Context, { device, action, dispense, commandId }: Intent): void {
  const { state, runtime, settings, layout, devices, cloud, store } = context
  const id = uuidv7(runtime)
  const controller = layout.controllerOf(device) ?? ''
  const maxMs = settings.maxMs[action]
  const place = dispense && {
    shelf: dispense.shelf,
    row: dispense.row,
    bin: dispense.bin,
    ...(dispense.unit && { ref: refOf(dispense.unit) }),
  }
  state.operations.add({
    id,
    controller,
    device,
    action,
    max_ms: maxMs,
    memory_id: devices.memoryOf(controller) ?? null,
    state: 'open',
    ...place,
    ...dispense?.unit,
    ...(dispense && { product_id: dispense.productId }),
    command_id: commandId ?? null,
    intent_at: cloud.now(),
  })
  const request: ActuationRequest = { operationId: id, device, action, maxMs, ...place }
  store.afterCommit(() => send(context, request))
}

function send(context: Context, request: ActuationRequest): void {
  const { controllers, checkpoint, runtime, settings, askAt, state, devices } = context
  askAt.set(request.operationId, runtime.clock.monotonic() + request.maxMs + settings.queryAfterMs)
  devices.sent(request.device, request.operationId)
  checkpoint('core.before-perform')
  const sent = controllers.perform(request)
  checkpoint('core.after-perform')
  if (sent) return
  context.handle(() => {
    const operation = state.operations.find(request.operationId)
    if (operation) applyNotSent(context, operation)
  })
}

/** Asks what became of an operation, and sets when to ask again. */
export function ask(context: Context, operation: OperationRow): void {
  const { runtime, settings, askAt, store, controllers } = context
  if (operation.state === 'open')
    askAt.set(operation.id, runtime.clock.monotonic() + settings.queryAfterMs + operation.max_ms)
  store.afterCommit(() => void controllers.query(operation.device, operation.id))
}

/** Asks for results that should have come by now. Returns how long until the next is due, where one will be. */
export function askOverdue(context: Context): number | undefined {
  const { state, devices, runtime, askAt } = context
  const now = runtime.clock.monotonic()
  const waits: number[] = []
  const open = state.operations.open()
  for (const id of askAt.keys()) if (!open.some((operation) => operation.id === id)) askAt.delete(id)
  for (const operation of open) {
    if (!devices.isUp(operation.controller)) continue
    if ((askAt.get(operation.id) ?? Infinity) <= now) ask(context, operation)
    const at = askAt.get(operation.id)
    if (at !== undefined) waits.push(Math.max(1, at - now))
  }
  return waits.length > 0 ? Math.min(...waits) : undefined
}
