import type { Clock } from '../../protocol/model/runtime.ts'
import type { HubStatus } from '../../protocol/contract/owner-hubs.ts'
import { HubHealth } from '../../protocol/model/hub-health.ts'
import type { Heartbeat } from '../../protocol/mqtt/session.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import type { Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'
import { stopsSelling } from './stalls.ts'

export interface HubState {
  /** Heard within the time that counts (SPEC §3), and not gone in good order since. */
  online: boolean
  /** Its service has stopped in good order. */
  hasLeft: boolean
  /** The connection's will has not come; a hint that is newer than `online`. */
  connected: boolean
  /** Whether a customer may order there: the owner, the hub itself and its connection agree. */
  acceptingOrders: boolean
  /** A stream between the hub and the cloud stands still: nothing is sold. */
  isStalled: boolean
  /** As of its last heartbeat; null before the first. */
  health: HubHealth | null
  /** When `health` was reported; milliseconds since the Unix epoch. */
  healthAt: number | null
  lastHeardAt: number | null
  software: string | null
  /** The epoch of the hub's ledger that the cloud follows (`QueuedOrder.hub_epoch`). */
  ledgerEpoch: string | null
}

const hubRows = (q: Queries) =>
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
      'hub_sessions.has_left',
      'hub_sessions.health',
      'hub_sessions.health_at',
      'hub_sessions.software',
      'hub_sessions.stalled',
      'hub_streams.epoch',
    ])

const hubRow = statement((q, hub: { hubId: number }) => hubRows(q).where('hubs.id', '=', hub.hubId))
type HubRow = Awaited<ReturnType<typeof hubRow>>[number]

/** What the cloud knows of a hub at `now`. A hub that does not exist is one that was never heard. */
export async function hubState(
  q: Queries,
  hubId: number,
  now: number,
  onlineWithinMs: number = defaultLimits.rules.onlineWithinMs,
): Promise<HubState> {
  const [row] = await hubRow(q, { hubId })
  return stateOf(row, now, onlineWithinMs)
}

/** The same of several hubs, by their ids. */
export async function hubStates(
  q: Queries,
  hubIds: readonly number[],
  now: number,
  onlineWithinMs: number = defaultLimits.rules.onlineWithinMs,
): Promise<Map<number, HubState>> {
  const rows = await hubRows(q).where('hubs.id', 'in', hubIds).execute()
  return new Map(rows.map((row) => [row.id, stateOf(row, now, onlineWithinMs)]))
}

function stateOf(row: HubRow | undefined, now: number, onlineWithinMs: number): HubState {
  const lastHeardAt = row?.last_heard_at ?? null
  const isRecent = lastHeardAt !== null && now - lastHeardAt <= onlineWithinMs
  const online = isRecent && row?.has_left !== 1
  const health = row?.health ? HubHealth.parse(JSON.parse(row.health)) : null
  const isStalled = stopsSelling(row?.stalled ?? null)
  const isWanted = row?.hub_status === 'active' && row.accepting_orders === 1
  return {
    online,
    hasLeft: row?.has_left === 1,
    connected: online && row?.is_connected === 1,
    isStalled,
    acceptingOrders: isWanted && online && !isStalled && health !== null && health.accepting_orders,
    health,
    healthAt: row?.health_at ?? null,
    lastHeardAt,
    software: row?.software ?? null,
    ledgerEpoch: row?.epoch ?? null,
  }
}

/** `HubState.ledgerEpoch` alone, as a part of a query. */
export const currentLedger = (q: Queries, hubId: number) =>
  q
    .selectFrom('hub_streams')
    .select('epoch')
    .where('hub_id', '=', hubId)
    .where('stream', '=', 'ledger')
    .where('is_current', '=', 1)

/**
 * A hub has said with the result of a command how it stands after it. False where that is not how it stands by now: it has
 * said something later, or has another session.
 */
export async function noteHealth(
  q: Queries,
  hubId: number,
  { session, monotonic, health }: Heartbeat,
  now: number,
): Promise<boolean> {
  const noted = await updateHealth(q, { hubId, session, monotonic, now, health: JSON.stringify(health) })
  return noted.length > 0
}

const updateHealth = statement(
  (q, at: { hubId: number; session: string; monotonic: number; now: number; health: string }) =>
    q
      .updateTable('hub_sessions')
      .set({ health: at.health, health_at: at.now, health_monotonic: at.monotonic })
      .where('hub_id', '=', at.hubId)
      .where('session', '=', at.session)
      .where((eb) => eb.or([eb('health_monotonic', 'is', null), eb('health_monotonic', '<=', at.monotonic)]))
      .returning('hub_id'),
)

/** O §2, `hub_status`, of which the first holds: retired, never heard of, in maintenance, taking no orders, in service. */
export function shownHubStatus(hub: {
  hub_status: HubStatus
  accepting_orders: 0 | 1
  last_heard_at: number | null
}): HubStatus {
  if (hub.hub_status === 'retired') return 'retired'
  if (hub.last_heard_at === null) return 'inactive'
  return hub.hub_status === 'active' && hub.accepting_orders === 0 ? 'paused' : hub.hub_status
}

/** A longer memory would let the drift between two clocks count for more than the delays that it evens out. */
const SAMPLES = 4
/** Four heartbeats: for the same reason none is older. */
const SAMPLE_LASTS_MS = 60_000

interface KnownClock {
  session: string
  aheadMs: number[]
  heardMs: number
}

/** What this process knows of the hubs' monotonic clocks, from hellos and heartbeats, or from the process that heard these. */
export class HubClocks {
  readonly #clock: Clock
  /** Samples: the hub's clock less ours at a message's arrival, never more than the true difference (SPEC §6). */
  readonly #hubs = new Map<number, KnownClock>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A message of `session` has said what the hub's clock was. */
  heard(hubId: number, session: string, hubMonotonic: number): void {
    const heardMs = this.#clock.monotonic()
    const known = this.#known(hubId)
    const earlier = known?.session === session ? known.aheadMs.slice(1 - SAMPLES) : []
    this.#hubs.set(hubId, { session, aheadMs: [...earlier, hubMonotonic - heardMs], heardMs })
  }

  /** The hub's monotonic clock now, or a little earlier; `undefined` where that session was not heard lately. */
  now(hubId: number, session: string): number | undefined {
    const latest = this.latest(hubId)
    return latest?.session === session ? latest.monotonic : undefined
  }

  /** The same in the session that was heard last. */
  latest(hubId: number): { session: string; monotonic: number } | undefined {
    const known = this.#known(hubId)
    return (
      known && { session: known.session, monotonic: this.#clock.monotonic() + Math.max(...known.aheadMs) }
    )
  }

  #known(hubId: number): KnownClock | undefined {
    const known = this.#hubs.get(hubId)
    return known && this.#clock.monotonic() - known.heardMs < SAMPLE_LASTS_MS ? known : undefined
  }
}
