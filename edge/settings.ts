import { defaultsOf, type SettingsOf, type SettingsTable } from '../protocol/model/program-settings.ts'
import { coreSettings } from './core/settings.ts'
import { linkSettings } from './hardware/link-settings.ts'
import { defaultOutboxSettings } from './journal/outbox.ts'
import { syncSettings } from './sync/settings.ts'

/** All that can be tuned in a hub, part by part. */
export const hubSettings = {
  core: coreSettings,
  links: linkSettings,
  outbox: { ...defaultOutboxSettings },
  sync: syncSettings,
} satisfies SettingsTable

export type HubSettings = SettingsOf<typeof hubSettings>
export const defaultHubSettings: HubSettings = defaultsOf(hubSettings)
