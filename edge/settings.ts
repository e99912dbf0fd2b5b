import { defaultCoreSettings, type CoreSettings } from './core/settings.ts'
import { defaultLinkSettings, type LinkSettings } from './hardware/link-settings.ts'
import { defaultOutboxSettings, type OutboxSettings } from './journal/outbox.ts'
import { defaultSyncSettings, type SyncSettings } from './sync/settings.ts'

/** All that can be tuned in a hub, part by part. */
export interface HubSettings {
  links: LinkSettings
  core: CoreSettings
  outbox: OutboxSettings
  sync: SyncSettings
}

export const defaultHubSettings: HubSettings = {
  links: defaultLinkSettings,
  core: defaultCoreSettings,
  outbox: defaultOutboxSettings,
  sync: defaultSyncSettings,
}
