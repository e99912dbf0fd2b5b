import type { CommandBody } from '../../protocol/mqtt/command.ts'
import type { AuditRecord } from '../platform/audit/audit.ts'

export interface AuditedCommand {
  hubId: number
  body: CommandBody
  actor: string
  /** None where nothing was sent. */
  commandId?: string
  result: string
  reason: string | null
}

/** What the audit log says of a command: who asked for what, and what came of it. */
export function auditOf({ hubId, body, actor, commandId, result, reason }: AuditedCommand): AuditRecord {
  return {
    actor,
    action: actionOf(body),
    hubId,
    object: objectOf(body),
    result,
    detail: {
      ...(commandId !== undefined && { command_id: commandId }),
      ...(reason !== null && { reason }),
    },
  }
}

/** As the route that asks for it is called. */
function actionOf(body: CommandBody): string {
  if (body.name === 'open_main_door') return 'hubs.request_door_open'
  return body.name === 'open_fridge' ? `controls.open_fridge_${body.side}` : `controls.${body.name}`
}

function objectOf(body: CommandBody): string {
  switch (body.name) {
    case 'open_bin':
    case 'close_bin':
    case 'raise_bin':
    case 'lower_bin':
    case 'cycle_bin':
    case 'get_bin_status':
    case 'reconnect_bin':
      return `bin-${body.bin}`
    case 'open_fridge':
    case 'close_fridge':
    case 'reconnect_fridge':
      return `fridge-${body.fridge}`
    case 'open_main_door':
      return 'main-door'
    case 'open_delivery':
    case 'cancel_order':
      return `order-${body.order_id}`
  }
}
