import type { HubHealth } from '../../../protocol/mqtt/session.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { ControlServices } from './audited-command.ts'
import { configure, withNumber, type Configuration } from './configuration.ts'
import { requireBin, requireFridge, type BinRequest, type FridgeRequest } from './devices.ts'
import { ok } from './control-result.ts'

/** O §4.6, contract §6: what is desired state. 200 where the hub has it in force, 202 where it will have. */
export function configurationHandlers({
  context,
}: ControlServices): Handlers<
  | 'owner.controls.enable_bin'
  | 'owner.controls.disable_bin'
  | 'owner.controls.toggle_bin'
  | 'owner.controls.enable_fridge'
  | 'owner.controls.disable_fridge'
  | 'owner.controls.stop_orders'
  | 'owner.controls.resume_orders'
> {
  async function setBin(
    { query, credential }: BinRequest,
    action: string,
    enabledAfter: (was: boolean) => boolean,
  ) {
    const { hub: hubId, bin } = query
    await requireBin(context, query)
    const isEnabled = ({ disabledBins }: Configuration): boolean => !disabledBins.includes(bin)
    const { after, applied } = await configure(context, {
      hubId,
      actor: credential.actor,
      action,
      object: `bin-${bin}`,
      change: (before) => ({
        ...before,
        disabledBins: withNumber(before.disabledBins, bin, !enabledAfter(isEnabled(before))),
      }),
      isShown: (health, wanted) =>
        health.bins.every(({ bin_number, enabled }) => bin_number !== bin || enabled === isEnabled(wanted)),
    })
    return ok(applied ? 200 : 202, { enabled: isEnabled(after) })
  }

  async function setFridge({ query, credential }: FridgeRequest, action: string, enabled: boolean) {
    const { hub: hubId, fridge } = query
    await requireFridge(context, query)
    const { applied } = await configure(context, {
      hubId,
      actor: credential.actor,
      action,
      object: `fridge-${fridge}`,
      change: (before) => ({
        ...before,
        disabledFridges: withNumber(before.disabledFridges, fridge, !enabled),
      }),
      isShown: (health) =>
        health.fridges.every((each) => each.fridge_number !== fridge || each.enabled === enabled),
    })
    return ok(applied ? 200 : 202, { enabled })
  }

  async function setIntake(
    { query, credential }: { query: { hub: number }; credential: { actor: string } },
    action: string,
    acceptingOrders: boolean,
  ) {
    const { applied } = await configure(context, {
      hubId: query.hub,
      actor: credential.actor,
      action,
      object: 'orders',
      change: (before) => ({ ...before, acceptingOrders }),
      isShown: (health: HubHealth) => health.accepting_orders === acceptingOrders,
    })
    return ok(applied ? 200 : 202, { accepting_orders: acceptingOrders })
  }

  return {
    'owner.controls.enable_bin': (request) => setBin(request, 'controls.enable_bin', () => true),
    'owner.controls.disable_bin': (request) => setBin(request, 'controls.disable_bin', () => false),
    'owner.controls.toggle_bin': (request) => setBin(request, 'controls.toggle_bin', (was) => !was),
    'owner.controls.enable_fridge': (request) => setFridge(request, 'controls.enable_fridge', true),
    'owner.controls.disable_fridge': (request) => setFridge(request, 'controls.disable_fridge', false),
    'owner.controls.stop_orders': (request) => setIntake(request, 'controls.stop_orders', false),
    'owner.controls.resume_orders': (request) => setIntake(request, 'controls.resume_orders', true),
  }
}
