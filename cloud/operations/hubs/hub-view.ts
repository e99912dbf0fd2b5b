import type { Selectable } from 'kysely'
import { HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import type { z } from 'zod'
import type { HubHealthReport, HubInfo } from '../../../protocol/contract/owner-hubs.ts'
import type { HubState } from '../../gateway/hub-state.ts'
import { timestampOrNull } from '../../platform/calendar/timestamps.ts'
import type { Tables } from '../../platform/store/schema.ts'

type HubRow = Selectable<Tables['hubs']>

/** O §2, hub info. */
export const describeHub = (row: HubRow): z.infer<typeof HubInfo> => ({
  success: true,
  ...summarizeHub(row),
  postal_code: row.postal_code,
  geojson_location: { type: 'Point', coordinates: [row.longitude, row.latitude] },
  timezone: row.timezone,
})

/** O §2, hub summary. */
export const summarizeHub = (row: HubRow): HubSummary => HubSummary.parse(row)

/**
 * O §2, hub health: what the hub last said of itself, as far as it can still hold. Of an offline hub the devices' statuses
 * are `offline`; which of them will be enabled is the cloud's to know (contract §6).
 */
export function reportHealth(
  hubId: number,
  state: HubState,
  disabled: { bins: readonly number[]; fridges: readonly number[] },
): HubHealthReport {
  const { online, health } = state
  const mainDoor = health?.doors.find(({ door }) => door === 'main')?.status
  return {
    hub_id: hubId,
    online,
    last_heartbeat: timestampOrNull(state.lastHeardAt),
    bins: (health?.bins ?? []).map(({ bin_number, enabled, status }) => ({
      bin_number,
      enabled: (enabled || !online) && !disabled.bins.includes(bin_number),
      status: online ? status : 'offline',
    })),
    fridges: (health?.fridges ?? []).map(({ fridge_number, enabled, temperature, status }) => ({
      fridge_number,
      enabled: (enabled || !online) && !disabled.fridges.includes(fridge_number),
      temperature,
      status: online ? status : 'offline',
    })),
    door_status: !online || mainDoor === undefined ? 'unknown' : doorStatus[mainDoor],
    network_status: online ? (state.connected ? 'connected' : 'degraded') : 'disconnected',
  }
}

const doorStatus = { locked: 'closed', unlocked: 'closed', open: 'open', unknown: 'unknown' } as const
