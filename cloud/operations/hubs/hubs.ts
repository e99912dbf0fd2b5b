import type { Selectable } from 'kysely'
import { z } from 'zod'
import { type HubHealthReport, type HubInfo, HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import { readLayout } from '../../commerce/catalogue/layout.ts'
import { hubState, type HubState } from '../../gateway/hub-state.ts'
import { timestampOrNull } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import { reachableHubs, requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Tables } from '../../platform/store/schema.ts'

const Numbers = z.array(z.int())

export const hubHandlers = (
  context: CloudContext,
): Handlers<
  'owner.hubs.list' | 'owner.hubs.ids' | 'owner.hubs.info' | 'owner.hubs.layout' | 'owner.hubs.health'
> => ({
  'owner.hubs.list': async ({ credential }) => {
    const hubs = await reachableHubs(context.db.kysely, credential)
    return hubs.map(summarizeHub)
  },
  'owner.hubs.ids': async ({ credential }) => {
    const hubs = await reachableHubs(context.db.kysely, credential)
    return hubs.map(({ id }) => id)
  },
  'owner.hubs.info': async ({ credential, query }) =>
    describeHub(await requireHub(context.db.kysely, credential, query.hub_id)),
  'owner.hubs.layout': async ({ query }) => ({
    layout: await readLayout(context.db.kysely, query.hub_id),
  }),
  'owner.hubs.health': async ({ credential, query }) => {
    const q = context.db.kysely
    const hub = await requireHub(q, credential, query.hub_id)
    const state = await hubState(q, hub.id, context.runtime.clock.now(), context.settings.onlineWithinMs)
    return reportHealth(hub.id, state, {
      bins: Numbers.parse(JSON.parse(hub.disabled_bins)),
      fridges: Numbers.parse(JSON.parse(hub.disabled_fridges)),
    })
  },
})

type HubRow = Selectable<Tables['hubs']>

/** O §2, hub info. */
const describeHub = (row: HubRow): z.infer<typeof HubInfo> => ({
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
 * are `offline`; which of them will be enabled is the cloud's to know.
 */
function reportHealth(
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
