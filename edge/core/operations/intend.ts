import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Action } from '../../../protocol/serial/frames.ts'
import type { ActuationRequest } from '../../hardware/controllers.ts'
import type { UnitKey } from '../../journal/state.ts'
import type { OperationRow } from '../../journal/tables.ts'
import type { Context } from '../context.ts'
import { earliest } from '../step.ts'
import { applyNotSent } from './outcomes.ts'

/**
 * The note that a controller stores with a dispense. Another store of this hub finds the order by it. The
 * note contains the order id in base64url, because a note has at most 40 characters (serial SPEC §1).
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

/** Whether the unit's note fits into a controller and can be decoded by another store. */
export function isNotable(unit: UnitKey): boolean {
  const ref = refOf(unit)
  return ref.length <= MAX_REF && unitOfRef(ref)?.line_id === unit.line_id
}

/**
 * The id of a new operation. Its time is the cloud's as far as the cloud has confirmed it: one id in the far future would
 * end the controller's proofs that later operations were never sent (serial SPEC §8).
 */
export const newOperationId = ({ cloud, runtime: { clock, random } }: Context): string =>
  uuidv7({ clock: { ...clock, now: () => cloud.certain() ?? cloud.now() }, random })

/** The motion of an operation, and its purpose. */
export interface Intent {
  device: string
  action: Action
  /** Source row, target bin, product if one is assigned, and the order's unit. */
  dispense?: { shelf: number; row: number; bin: number; productId: number | null; unit?: UnitKey }
  commandId?: string
}

/** Journals the intent in the current transaction. The command is sent only after the commit (I1). */
export function intend(context: Context, { device, action, dispense, commandId }: Intent): void {
  const { state, settings, layout, devices, cloud, store } = context
  const id = newOperationId(context)
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
  const { controllers, checkpoint, runtime, settings, askAt, state, devices, layout } = context
  askAt.set(request.operationId, runtime.clock.monotonic() + request.maxMs + settings.queryAfterMs)
  devices.sent(request.device, request.operationId)
  checkpoint('core.before-perform')
  const sent = controllers.perform(request)
  checkpoint('core.after-perform')
  if (sent) return
  // The line is not up. The hub must know it: otherwise the same step would follow at once, without end.
  devices.down(layout.controllerOf(request.device) ?? '')
  context.handleUnrepeated(() => {
    const operation = state.operations.find(request.operationId)
    if (operation) applyNotSent(context, operation)
  })
}

/** Queries the outcome of an operation, and sets the time of the next query. */
export function ask(context: Context, operation: OperationRow): void {
  const { runtime, settings, askAt, store, controllers } = context
  if (operation.state === 'open')
    askAt.set(operation.id, runtime.clock.monotonic() + settings.queryAfterMs + operation.max_ms)
  store.afterCommit(() => void controllers.query(operation.device, operation.id))
}

/** Queries overdue results. Returns the milliseconds until the next query, if there will be one. */
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
  return earliest(waits)
}
