import type { FridgeSide } from '../../../protocol/model/hardware.ts'
import { DoorHealth } from '../../../protocol/mqtt/session.ts'
import type { CommandBody } from '../../../protocol/mqtt/command.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { sendAudited, type ControlServices } from './audited-command.ts'
import { ok } from './control-result.ts'
import { requireFridge, type FridgeRequest } from './devices.ts'
import { hardwareError } from './hardware-error.ts'

/** O §4.6: what moves a fridge's locks, or its serial line. */
export function fridgeHandlers(
  services: ControlServices,
): Handlers<
  | 'owner.controls.open_fridge_left'
  | 'owner.controls.open_fridge_right'
  | 'owner.controls.open_fridge_middle'
  | 'owner.controls.close_fridge'
  | 'owner.controls.reconnect_fridge'
> {
  async function send({ query, credential }: FridgeRequest, body: CommandBody) {
    await requireFridge(services.context, query)
    const outcome = await sendAudited(services, { hubId: query.hub, body, actor: credential.actor })
    if (outcome.kind !== 'executed') throw hardwareError(outcome, 'fridge_not_found')
    return {
      command_id: outcome.commandId,
      duration_ms: Math.round(outcome.durationMs),
      data: outcome.data,
    }
  }

  async function moveLocks(request: FridgeRequest, body: CommandBody) {
    const { data, ...rest } = await send(request, body)
    return ok(200, { ...rest, door: DoorHealth.shape.status.catch('unknown').parse(data['door']) })
  }

  const open = (request: FridgeRequest, side: FridgeSide) =>
    moveLocks(request, { name: 'open_fridge', fridge: request.query.fridge, side })

  return {
    'owner.controls.open_fridge_left': (request) => open(request, 'left'),
    'owner.controls.open_fridge_right': (request) => open(request, 'right'),
    'owner.controls.open_fridge_middle': (request) => open(request, 'middle'),
    'owner.controls.close_fridge': (request) =>
      moveLocks(request, { name: 'close_fridge', fridge: request.query.fridge }),
    async 'owner.controls.reconnect_fridge'(request) {
      const { data: _, ...rest } = await send(request, {
        name: 'reconnect_fridge',
        fridge: request.query.fridge,
      })
      return ok(200, { ...rest, connected: true as const })
    },
  }
}
