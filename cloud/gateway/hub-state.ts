import type { Clock } from '../../protocol/model/runtime.ts'
import type { HubStatus } from '../../protocol/contract/owner-hubs.ts'
import { HubHealth } from '../../protocol/model/hub-health.ts'
import type { Heartbeat } from '../../protocol/mqtt/session.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import type { Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'
import { stopsSelling } from './stalls.ts'

export interface HubState {
  /** The hub sent a message within the counted time (SPEC §3), and has not sent a goodbye since. */
  online: boolean
  /** Its service has stopped normally. */
  hasLeft: boolean
  /** The connection's will has not arrived; a hint that is newer than `online`. */
  connected: boolean
  /** Whether a customer may order there: the owner, the hub and its connection allow it. */
  acceptingOrders: boolean
  /** A stream between the hub and the cloud has stalled: nothing is sold. */
  isStalled: boolean
  /** From its last heartbeat; null before the first. */
  health: HubHealth | null
  /** When `health` was reported; milliseconds since the Unix epoch. */
  healthAt: number | null
  lastHeardAt: number | null
  /** The version of its software; null before its first hello. */
  version: string | null
  /** The epoch of the hub's ledger that the cloud follows (`QueuedOrder.hub_epoch`). */
  ledgerEpoch: string | null
}

/** The version in the software that a hub reports, `larder-edge VERSION`. */
export const versionOf = (software: string | null | undefined): string | null =>
  software?.replace(/^larder-edge /, '') ?? null

/** Hubs with the columns of `stateOf`. */
export const hubRows = (q: Queries) =>
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

/** The cloud's knowledge of a hub at `now`. An unknown hub has the state of one that never sent a message. */
export async function hubState(
  q: Queries,
  hubId: number,
  now: number,
  onlineWithinMs: number = defaultLimits.rules.onlineWithinMs,
): Promise<HubState> {
  const [row] = await hubRow(q, { hubId })
  return stateOf(row, now, onlineWithinMs)
}

/** The same for several hubs, by id. */
export async function hubStates(
  q: Queries,
  hubIds: readonly number[],
  now: number,
  onlineWithinMs: number = defaultLimits.rules.onlineWithinMs,
): Promise<Map<number, HubState>> {
  const rows = await hubRows(q).where('hubs.id', 'in', hubIds).execute()
  return new Map(rows.map((row) => [row.id, stateOf(row, now, onlineWithinMs)]))
}

/** The state of a row of `hubRows` at `now`. */
export function stateOf(row: HubRow | undefined, now: number, onlineWithinMs: number): HubState {
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
    version: versionOf(row?.software),
    ledgerEpoch: row?.epoch ?? null,
  }
}

/** Only `HubState.ledgerEpoch`, as a part of a query. */
export const currentLedger = (q: Queries, hubId: number) =>
  q
    .selectFrom('hub_streams')
    .select('epoch')
    .where('hub_id', '=', hubId)
    .where('stream', '=', 'ledger')
    .where('is_current', '=', 1)

/**
 * Records the hub's health from the result of a command. False if it is not current: the hub has sent a later report,
 * or has another session.
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

/** O §2, `hub_status`. The first that applies: retired, never online, in maintenance, taking no orders, in service. */
export function shownHubStatus(hub: {
  hub_status: HubStatus
  accepting_orders: 0 | 1
  last_heard_at: number | null
}): HubStatus {
  if (hub.hub_status === 'retired') return 'retired'
  if (hub.last_heard_at === null) return 'inactive'
  return hub.hub_status === 'active' && hub.accepting_orders === 0 ? 'paused' : hub.hub_status
}

/** Number of samples. With more, the drift between two clocks would exceed the delays that the samples even out. */
const SAMPLES = 4
/** Four heartbeats, for the same reason. */
const SAMPLE_LASTS_MS = 60_000

interface KnownClock {
  session: string
  aheadMs: number[]
  heardMs: number
}

/**
 * The hubs' monotonic clocks as this process knows them, from hellos and heartbeats, or from the process that received
 * these.
 */
export class HubClocks {
  readonly #clock: Clock
  /**
   * Samples: the hub's clock minus this process's at a message's arrival, never more than the true difference (SPEC
   * §6).
   */
  readonly #hubs = new Map<number, KnownClock>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Records a hub's clock from a message of `session`. */
  heard(hubId: number, session: string, hubMonotonic: number): void {
    const heardMs = this.#clock.monotonic()
    const known = this.#known(hubId)
    const earlier = known?.session === session ? known.aheadMs.slice(1 - SAMPLES) : []
    this.#hubs.set(hubId, { session, aheadMs: [...earlier, hubMonotonic - heardMs], heardMs })
  }

  /** The hub's monotonic clock now, or slightly earlier; `undefined` if the session sent no message lately. */
  now(hubId: number, session: string): number | undefined {
    const latest = this.latest(hubId)
    return latest?.session === session ? latest.monotonic : undefined
  }

  /** The same for the hub's latest session. */
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
