import { uuidv7 } from '../../../protocol/model/ids.ts'
import type { Action } from '../../../protocol/serial/frames.ts'
import type { ActuationRequest } from '../../hardware/controllers.ts'
import type { Context } from '../context.ts'
import { applyNotSent } from './outcomes.ts'

/** What an operation is to do, and for what. */
export interface Intent {
  device: string
  action: Action
  shelf?: number
  row?: number
  bin?: number
  order?: { orderId: number; lineId: number; unit: number; productId: number }
  commandId?: string
}

/**
 * Journals the intent, in the transaction under way; the command goes out after its commit and not before (I1).
 */
export function intend(context: Context, intent: Intent): string {
  const { journal, runtime, settings, layout, devices, cloud, store } = context
  const { device, action, shelf, row, bin, order, commandId } = intent
  const id = uuidv7(runtime)
  const controller = layout.controllerOf(device) ?? ''
  const ref = order ? `${order.orderId}.${order.lineId}.${order.unit}` : undefined
  journal.operations.insert({
    id,
    controller,
    device,
    action,
    max_ms: settings.maxMs[action],
    shelf: shelf ?? null,
    row: row ?? null,
    bin: bin ?? null,
    ref: ref ?? null,
    memory_id: devices.memoryOf(controller) ?? null,
    state: 'open',
    why: null,
    moved: 1,
    drops: 0,
    ms: 0,
    order_id: order?.orderId ?? null,
    line_id: order?.lineId ?? null,
    unit: order?.unit ?? null,
    product_id: order?.productId ?? null,
    command_id: commandId ?? null,
    imported: 0,
    intent_at: cloud.now(),
    ended_at: null,
  })
  const request: ActuationRequest = {
    operationId: id,
    device,
    action,
    maxMs: settings.maxMs[action],
    ...(shelf !== undefined && { shelf }),
    ...(row !== undefined && { row }),
    ...(bin !== undefined && { bin }),
    ...(ref !== undefined && { ref }),
  }
  store.afterCommit(() => send(context, request))
  return id
}

function send(context: Context, request: ActuationRequest): void {
  const { controllers, checkpoint, runtime, settings, askAt, journal } = context
  askAt.set(request.operationId, runtime.clock.monotonic() + request.maxMs + settings.queryAfterMs)
  checkpoint('core.before-perform')
  const sent = controllers.perform(request)
  checkpoint('core.after-perform')
  if (sent) return
  context.turn(() => {
    const operation = journal.operations.find(request.operationId)
    if (operation) applyNotSent(context, operation)
  })
}
