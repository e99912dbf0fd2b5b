import { HubHealth } from '../../protocol/mqtt/session.ts'
import { defaultSettings } from '../platform/settings/settings.ts'
import type { Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

export interface HubState {
  /** Heard from lately enough (contract §6). */
  online: boolean
  /** The connection's will has not come; a hint that is newer than `online`. */
  connected: boolean
  /** Whether a customer may order there: the owner, the hub itself and its connection agree. */
  acceptingOrders: boolean
  /** As of its last heartbeat; null before the first. */
  health: HubHealth | null
  /** When `health` was reported; milliseconds since the Unix epoch. */
  healthAt: number | null
  lastHeardAt: number | null
  software: string | null
  /** The epoch of the hub's ledger that the cloud follows (`QueuedOrder.hub_epoch`). */
  ledgerEpoch: string | null
}

const UNHEARD: HubState = {
  online: false,
  connected: false,
  acceptingOrders: false,
  health: null,
  healthAt: null,
  lastHeardAt: null,
  software: null,
  ledgerEpoch: null,
}

/** What the cloud knows of one hub at `now`. A hub that does not exist is one that was never heard. */
export async function hubState(
  q: Queries,
  hubId: number,
  now: number,
  onlineWithinMs: number = defaultSettings.onlineWithinMs,
): Promise<HubState> {
  const [row] = await rowOf(q, { hubId })
  return row ? stateOf(row, now, onlineWithinMs) : UNHEARD
}

/** The same for several hubs, with one query. */
export async function hubStates(
  q: Queries,
  hubIds: readonly number[],
  now: number,
  onlineWithinMs: number = defaultSettings.onlineWithinMs,
): Promise<Map<number, HubState>> {
  if (hubIds.length === 0) return new Map()
  const rows = await selectRows(q).where('hubs.id', 'in', hubIds).execute()
  return new Map(rows.map((row) => [row.id, stateOf(row, now, onlineWithinMs)]))
}

const selectRows = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .leftJoin('hub_streams', (join) =>
      join
        .onRef('hub_streams.hub_id', '=', 'hubs.id')
        .on('hub_streams.stream', '=', 'ledger')
        .on('hub_streams.is_current', '=', 1),
    )
    .select([
      'hubs.id',
      'hubs.hub_status',
      'hubs.accepting_orders',
      'hub_sessions.last_heard_at',
      'hub_sessions.is_connected',
      'hub_sessions.health',
      'hub_sessions.health_at',
      'hub_sessions.software',
      'hub_streams.epoch',
    ])

type HubRow = Awaited<ReturnType<ReturnType<typeof selectRows>['execute']>>[number]

const rowOf = statement((q, hub: { hubId: number }) => selectRows(q).where('hubs.id', '=', hub.hubId))

function stateOf(row: HubRow, now: number, onlineWithinMs: number): HubState {
  const online = row.last_heard_at !== null && now - row.last_heard_at <= onlineWithinMs
  const health = row.health === null ? null : HubHealth.parse(JSON.parse(row.health))
  const wanted = row.hub_status === 'active' && row.accepting_orders === 1
  return {
    online,
    connected: online && row.is_connected === 1,
    acceptingOrders: wanted && online && health !== null && health.accepting_orders,
    health,
    healthAt: row.health_at,
    lastHeardAt: row.last_heard_at,
    software: row.software,
    ledgerEpoch: row.epoch,
  }
}
