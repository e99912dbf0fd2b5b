import type { HubCore } from '../core/hub-core.ts'
import type { DesiredStates } from '../desired/desired-states.ts'
import type { Outbox } from '../journal/outbox.ts'
import { IDLE, readJson, updateFiles, UpdateState } from '../update/files.ts'

export interface Leaving {
  config: { store: string; canMove: boolean }
  desired: Pick<DesiredStates, 'trial' | 'isWaiting'>
  /** Undefined while the hub cannot use its journal. */
  core: () => Pick<HubCore, 'reasonToStay'> | undefined
  outbox: () => Pick<Outbox, 'position'>
}

/** Why this hub must not move to another cell now, as a sentence; undefined if it may. */
export function reasonToStay({ config, desired, core }: Omit<Leaving, 'outbox'>): string | undefined {
  if (!config.canMove)
    return 'MQTT_PASSWORD or MQTT_URL is set at the hub, and would precede the enrolment in the other cell'
  // Its way back needs the present journal.
  if ((readJson(updateFiles(config.store).state, UpdateState) ?? IDLE).now.step !== 'idle')
    return 'an update is in progress'
  if (desired.trial() || desired.isWaiting()) return 'settings or a hardware description are being tried'
  const hub = core()
  return hub ? hub.reasonToStay() : 'the hub cannot use its journal'
}

/** Why this hub must not leave its journal now, although it is enrolled in another cell; undefined if it may. */
export function reasonToWait(hub: Leaving): string | undefined {
  const reason = reasonToStay(hub)
  if (reason !== undefined) return reason
  const { base, last } = hub.outbox().position('ledger')
  return base === last ? undefined : 'the cloud has not confirmed all reports of this hub'
}
