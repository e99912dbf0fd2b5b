import type { z } from 'zod'
import { type HubInfo, HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import { shownHubStatus } from '../../gateway/hub-state.ts'
import { readBinOrders } from '../../commerce/orders/bin-room.ts'
import { readLayout } from '../../commerce/catalogue/layout.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { type HubWithContact, reachableHubs, requireHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries } from '../../platform/store/database.ts'
import { readDiagnosis, recordsOf } from './diagnoses.ts'
import { readBuilt, readHubState, reportHealth } from './hub-health.ts'

export const hubHandlers = (
  context: CloudContext,
): Handlers<
  | 'owner.hubs.list'
  | 'owner.hubs.ids'
  | 'owner.hubs.info'
  | 'owner.hubs.layout'
  | 'owner.hubs.health'
  | 'owner.hubs.bins'
  | 'owner.hubs.logs'
> => ({
  'owner.hubs.bins': async ({ query }) => {
    const { online, health, healthAt } = await readHubState(context.db.kysely, context, query.hub_id)
    return (health?.bins ?? []).map(({ bin_number, door, lift, fault_code }) => ({
      bin_number,
      door: online ? door : ('unknown' as const),
      lift: online ? lift : ('unknown' as const),
      fault_code,
      reported_at: timestampOrNull(healthAt),
    }))
  },
  'owner.hubs.logs': async ({ credential, query: { hub_id: hubId, minutes, limit } }) => {
    const { db, runtime, settings } = context
    const { owned_since } = await requireHub(db.kysely, credential, hubId)
    // The records from before it belong to the former owner.
    const since_ms = Math.min(minutes * 60_000, Math.max(0, runtime.clock.now() - owned_since))
    const act = { actor: credential.actor, action: 'hubs.logs', hubId, object: `hub-${hubId}` }
    const record = (q: Queries) =>
      appendAudit(q, runtime, { ...act, result: 'executed', detail: { minutes, limit } })
    const wanted = { kind: 'logs', since_ms, limit } as const
    const answer = await readDiagnosis(context, hubId, wanted, record, settings.hubLogMs)
    if (answer === 'hub_offline')
      throw new ApiError('hardware_error', 'The hub is offline, so its log cannot be read.', {
        reason: 'offline',
      })
    if (answer === 'timeout')
      throw new ApiError('hardware_error', 'The hub is connected and does not answer.', { reason: 'timeout' })
    const data = await recordsOf(answer.content, limit)
    if (!data)
      throw new ApiError('hardware_error', 'The answer of the hub cannot be read.', { reason: 'fault' })
    return { data }
  },
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
    const built = await readBuilt(q, [hub.id])
    const orders = await readBinOrders(q, [hub.id])
    const state = await readHubState(q, context, hub.id)
    return reportHealth(hub, state, built.get(hub.id)!, orders.get(hub.id)!)
  },
})

/** O §2, hub info. */
export const describeHub = (row: HubWithContact): z.infer<typeof HubInfo> => ({
  success: true,
  ...summarizeHub(row),
  postal_code: row.postal_code,
  geojson_location: { type: 'Point', coordinates: [row.longitude, row.latitude] },
  timezone: row.timezone,
})

/** O §2, hub summary. */
export const summarizeHub = (row: HubWithContact): HubSummary =>
  HubSummary.parse({ ...row, hub_status: shownHubStatus(row) })
