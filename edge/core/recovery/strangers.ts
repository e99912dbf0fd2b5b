import { controllerSubject } from '../../../protocol/model/subject.ts'
import type { ControllerIdentity } from '../../hardware/controllers.ts'
import type { Context } from '../context.ts'
import type { Stranger } from '../devices.ts'
import { setAlarm } from '../ledger.ts'

/** A board has connected that is not this hub's. `isForeign`: the hub does not take it over automatically. */
export function meetStranger(
  context: Context,
  controller: string,
  { owner, memoryId }: ControllerIdentity,
  isForeign: boolean,
): void {
  const { strangers, devices, log } = context
  strangers.set(controller, { isForeign, heard: new Set() })
  devices.hold(controller)
  if (!isForeign) return
  const whose =
    owner === null ? 'is new, or has lost its memory' : `belongs to hub ${owner.hub} as ${owner.ctl}`
  const detail = `the board on its line ${whose}`
  log.warn({ controller, memoryId, owner }, `${detail}: it is not used`)
  setAlarm(context, 'controller_foreign', controllerSubject(controller), true, detail)
}

/** Whether the board's owner is this hub and this line. */
export const isOfThisLine = (
  { hardware }: Context,
  controller: string,
  { owner }: ControllerIdentity,
): boolean => owner?.hub === hardware.hubId && owner.ctl === controller

/**
 * A device reported on the line of a foreign controller. A board without an owner is taken over once exactly
 * the devices of this line have reported.
 */
export function hearStranger(context: Context, controller: string, stranger: Stranger, device: string): void {
  stranger.heard.add(device)
  if (!stranger.isForeign) takeOver(context, controller, stranger)
}

/** Takes over a board without its memory. Returns false if the line does not have exactly the expected devices. */
export function takeOver(context: Context, controller: string, { heard }: Stranger): boolean {
  const wanted = context.layout.devicesOf(controller)
  if (heard.size !== wanted.length || !wanted.every((device) => heard.has(device))) return false
  context.log.info({ controller }, 'the controller on this line is taken over')
  own(context, controller, true)
  return true
}

/** Stores this hub as the owner in a controller. */
export function own(context: Context, controller: string, wipe: boolean): void {
  const { store, controllers, hardware, storeId } = context
  const owner = { hub: hardware.hubId, ctl: controller, store: storeId }
  store.afterCommit(() => void controllers.own(controller, owner, wipe))
}
