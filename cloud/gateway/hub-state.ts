import type { Clock } from '../../protocol/model/runtime.ts'
import { HubHealth } from '../../protocol/mqtt/session.ts'
import { defaultSettings } from '../platform/settings/settings.ts'
import type { Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

export interface HubState {
  /** Heard from lately enough (SPEC §3). */
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

const hubRow = statement((q, hub: { hubId: number }) =>
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
      'hubs.hub_status',
      'hubs.accepting_orders',
      'hub_sessions.last_heard_at',
      'hub_sessions.is_connected',
      'hub_sessions.health',
      'hub_sessions.health_at',
      'hub_sessions.software',
      'hub_streams.epoch',
    ])
    .where('hubs.id', '=', hub.hubId),
)

/** What the cloud knows of a hub at `now`. A hub that does not exist is one that was never heard. */
export async function hubState(
  q: Queries,
  hubId: number,
  now: number,
  onlineWithinMs: number = defaultSettings.onlineWithinMs,
): Promise<HubState> {
  const [row] = await hubRow(q, { hubId })
  const lastHeardAt = row?.last_heard_at ?? null
  const online = lastHeardAt !== null && now - lastHeardAt <= onlineWithinMs
  const health = row?.health ? HubHealth.parse(JSON.parse(row.health)) : null
  const isWanted = row?.hub_status === 'active' && row.accepting_orders === 1
  return {
    online,
    connected: online && row?.is_connected === 1,
    acceptingOrders: isWanted && online && health !== null && health.accepting_orders,
    health,
    healthAt: row?.health_at ?? null,
    lastHeardAt,
    software: row?.software ?? null,
    ledgerEpoch: row?.epoch ?? null,
  }
}

/** A longer memory would let the drift between two clocks count for more than the delays that it evens out. */
const SAMPLES = 4

/** What this process knows of the hubs' monotonic clocks, from hellos and heartbeats. */
export class HubClocks {
  readonly #clock: Clock
  /** Samples: the hub's clock less ours at a message's arrival, never more than the true difference (SPEC §6). */
  readonly #hubs = new Map<number, { session: string; aheadMs: number[] }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A message of `session` has said what the hub's clock was. */
  heard(hubId: number, session: string, hubMonotonic: number): void {
    const known = this.#hubs.get(hubId)
    const earlier = known?.session === session ? known.aheadMs.slice(1 - SAMPLES) : []
    this.#hubs.set(hubId, { session, aheadMs: [...earlier, hubMonotonic - this.#clock.monotonic()] })
  }

  /** The hub's monotonic clock now, or a little earlier; `undefined` where this process has not heard that session. */
  now(hubId: number, session: string): number | undefined {
    const known = this.#hubs.get(hubId)
    if (known?.session !== session) return undefined
    return this.#clock.monotonic() + Math.max(...known.aheadMs)
  }
}
