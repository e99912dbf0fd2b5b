import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'
import { DeviceStatus, HubSummary } from './hub-objects.ts'
import { defineRoutes } from './route.ts'

/** O §2, hub health. A hub that was never heard has no heartbeat, and no temperature is known before it is read. */
export const HubHealthReport = z
  .object({
    hub_id: Id,
    online: z.boolean(),
    last_heartbeat: Timestamp.nullable(),
    bins: z.array(z.object({ bin_number: z.int(), enabled: z.boolean(), status: DeviceStatus })),
    fridges: z.array(
      z.object({
        fridge_number: z.int(),
        enabled: z.boolean(),
        temperature: z.number().nullable(),
        status: DeviceStatus,
      }),
    ),
    door_status: z.enum(['closed', 'open', 'unknown']),
    network_status: z.enum(['connected', 'degraded', 'disconnected']),
  })
  .meta({ id: 'HubHealthReport' })
export type HubHealthReport = z.infer<typeof HubHealthReport>

/** O §4.1. */
export const ownerHubRoutes = defineRoutes({
  'owner.hubs.list': {
    method: 'GET',
    path: '/owners/hubs',
    interface: 'owner',
    auth: { kind: 'api', scope: 'hubs:read' },
    rate: 'low',
    response: z.array(HubSummary),
    tag: 'Hubs',
    summary: 'List the hubs to which the credential has access',
  },
  'owner.hubs.health': {
    method: 'GET',
    path: '/owners/hubs/get_hub_health/',
    interface: 'owner',
    auth: { kind: 'api', scope: 'hubs:read' },
    rate: 'standard',
    query: z.object({ hub_id: Id }),
    hub: 'hub_id',
    response: HubHealthReport,
    tag: 'Hubs',
    summary: "A hub's health: bins, fridges, main door, network",
    description:
      '`online` means that the hub was heard of within 90 s. Of an offline hub the devices are `offline`, and the temperatures are the last ones known.',
  },
})
