import {
  defaultsOf,
  duration,
  limits,
  prefixed,
  type SettingsOf,
  type SettingsTable,
} from '../protocol/model/program-settings.ts'
import { coreSettings } from './core/settings.ts'
import { linkSettings } from './hardware/link-settings.ts'
import { defaultOutboxSettings } from './journal/outbox.ts'
import { syncSettings } from './sync/settings.ts'

/** All that can be tuned in a hub, part by part. */
export const hubSettings = {
  core: limits('Decisions', coreSettings),
  links: limits('Serial lines', linkSettings),
  outbox: { ...defaultOutboxSettings },
  sync: limits('Connection to the cloud', syncSettings),
  /** The pauses between attempts to use a storage that fails. */
  storage: limits(
    'Journal',
    prefixed('STORAGE_RETRY', {
      firstMs: duration(1000, 'First pause before the hub opens its journal again after a storage failure.'),
      maxMs: duration(30_000, 'Maximum pause. The pauses double, and half of each is random.'),
    }),
  ),
} satisfies SettingsTable

export type HubSettings = SettingsOf<typeof hubSettings>
export const defaultHubSettings: HubSettings = defaultsOf(hubSettings)
