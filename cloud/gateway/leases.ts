import { expressionBuilder, sql } from 'kysely'
import type { Heartbeat, Hello } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { HubDomain } from './domain.ts'
import { maySpeak } from './draining.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import type { Tables } from '../platform/store/schema.ts'
import { statement } from '../platform/store/statement.ts'
import type { Flag } from '../platform/store/table.ts'

export interface LeaseKeeperPorts {
  context: CloudContext
  settings: GatewayLimits
  /** Identifies this life of this process. */
  processId: string
}

/** The state of a hub's lease after a heartbeat. */
export type Renewal =
  | {
      kind: 'held'
      /** The end of the lease; milliseconds since the Unix epoch. */
      until: number
      /** The stored health is not later than the heartbeat's. */
      isLatest: boolean
    }
  /** Another process serves the hub. */
  | { kind: 'other' }
  /** The recorded session is another one, or there is none: a hello is needed. */
  | { kind: 'unknown-session'; session: string | null }

/** A heartbeat and its hub. */
export interface Beat {
  hubId: number
  heartbeat: Heartbeat
}

/** A hello and its hub. */
export interface Said {
  hubId: number
  hello: Hello
}

/** The stored row of a hub with a heartbeat. */
interface StoredBeat {
  hub_id: number
  session: string
  process_id: string
  lease_until: number
  last_heard_at: number
  is_connected: Flag
  has_left: Flag
  /** The heartbeat's session is the recorded one. */
  is_known: Flag
  /** The session has reported this health already, or a later one. */
  is_old: Flag
}

/** A hub that this process holds. */
export interface HeldHub {
  hubId: number
  session: string
}

/** Hubs in one statement: SQLite accepts 32,766 values. */
const HUBS_AT_ONCE = 5000

/**
 * Leases in `hub_sessions`: one process at a time serves a hub (SPEC §7). `Shares` decides which; this class takes,
 * renews and hands over this process's leases, and takes those of processes that are gone. Correctness does not depend
 * on leases: if the processes' clocks differ slightly, some work is only done twice.
 */
export class LeaseKeeper {
  readonly #ports: LeaseKeeperPorts

  constructor(ports: LeaseKeeperPorts) {
    this.#ports = ports
  }

  /**
   * Records hubs' new sessions and takes their leases. It does not if another process holds a lease, or has received a
   * later hello of the same life of the hub's service. Returns the hubs that are now held; all rows stay locked until
   * the end of the transaction.
   */
  async takeByHellos(tx: Tx, said: readonly Said[]): Promise<Set<number>> {
    const { now, lease } = this.#lease()
    const source = recordset(
      tx.kind,
      {
        hub_id: 'int',
        session: 'text',
        software: 'text',
        instance: 'text',
        said_at: 'real',
        applied: 'int',
        failed: 'int',
        error: 'text',
        can_move: 'int',
      },
      said.map(({ hubId, hello: { session, software, instance = null, clock, desired, can_move } }) => ({
        hub_id: hubId,
        session,
        software,
        instance,
        said_at: clock.monotonic,
        applied: desired?.applied ?? null,
        failed: desired?.failed?.version ?? null,
        error: desired?.failed?.error ?? null,
        can_move: can_move ? 1 : 0,
      })),
    )
    const { rows } = await sql<{ hub_id: number }>`
      insert into hub_sessions
        (hub_id, session, software, instance, hello_monotonic, applied_version, failed_version, apply_error,
          can_move, process_id, lease_until, is_connected, last_heard_at)
      select hub_id, session, software, instance, said_at, applied, failed, error, can_move, cast(${lease.process_id} as text),
        cast(${lease.lease_until} as bigint), cast(${lease.is_connected} as bigint), cast(${now} as bigint)
      from ${source} where true order by hub_id
      on conflict (hub_id) do update set
        session = excluded.session, software = excluded.software, instance = excluded.instance,
        hello_monotonic = excluded.hello_monotonic, applied_version = excluded.applied_version,
        failed_version = excluded.failed_version, apply_error = excluded.apply_error,
        can_move = excluded.can_move, process_id = excluded.process_id,
        lease_until = excluded.lease_until, is_connected = excluded.is_connected, has_left = 0,
        last_heard_at = excluded.last_heard_at, health_monotonic = null
      where (hub_sessions.process_id = excluded.process_id or hub_sessions.lease_until <= excluded.last_heard_at)
        and (hub_sessions.instance is null or hub_sessions.instance is distinct from excluded.instance
          or hub_sessions.hello_monotonic <= excluded.hello_monotonic)
      returning hub_id
    `.execute(tx.q)
    return new Set(rows.map(({ hub_id }) => hub_id))
  }

  /**
   * Compares heartbeats with the stored rows; at most one heartbeat per hub. `due` means that the row must be written
   * (`renew`): the health has changed, the hub was away, or two fifths of its lease or presence are over.
   * So the lease lasts if one heartbeat is lost, and until the next heartbeat if the hub sends one every 50 s or more often. Other rows are not written:
   * such a heartbeat costs a part of one read.
   */
  async compare(q: Queries, beats: readonly Beat[]): Promise<Map<number, Renewal | 'due'>> {
    const { now, lease } = this.#lease()
    const { context, settings } = this.#ports
    const renewedSince = now - 0.4 * Math.min(settings.leaseMs, context.settings.onlineWithinMs)
    const rows = await storedBeats(q, { beats: rowsOf(beats), now })
    const stored = new Map(rows.map((row) => [row.hub_id, row]))
    return new Map(
      beats.map(({ hubId }): [number, Renewal | 'due'] => {
        const row = stored.get(hubId)
        const isOurs = row?.process_id === lease.process_id
        if (row && !isOurs && row.lease_until > now) return [hubId, { kind: 'other' }]
        if (!row?.is_known) return [hubId, { kind: 'unknown-session', session: row?.session ?? null }]
        const isPresent = row.is_connected === 1 && row.has_left === 0 && row.last_heard_at > renewedSince
        const isStored = isOurs && isPresent && row.is_old === 1
        return [hubId, isStored ? { kind: 'held', until: row.lease_until, isLatest: false } : 'due']
      }),
    )
  }

  /** Writes the heartbeats that are `due`, and renews or takes over the leases of their hubs, in one statement. */
  async renew(tx: Tx, beats: readonly Beat[]): Promise<Map<number, Renewal>> {
    const { now, lease } = this.#lease()
    const { process_id: processId, lease_until: until } = lease
    const { rows } = await sql<{ hub_id: number; health_monotonic: number }>`
      update hub_sessions set
        process_id = ${processId}, lease_until = ${until}, is_connected = 1, has_left = 0, last_heard_at = ${now},
        health = case when health_monotonic > said_at then health else said end,
        health_at = case when health_monotonic > said_at then health_at else ${now} end,
        health_monotonic = case when health_monotonic > said_at then health_monotonic else said_at end
      from ${recordset(tx.kind, beatColumns, rowsOf(beats))}
      where hub_sessions.hub_id = r.hub_id and session = said_in
        and (process_id = ${processId} or lease_until <= ${now})
      returning hub_sessions.hub_id, health_monotonic
    `.execute(tx.q)
    const written = new Map(rows.map((row) => [row.hub_id, row.health_monotonic]))
    return new Map(
      beats.map(({ hubId, heartbeat: { monotonic } }): [number, Renewal] => {
        const at = written.get(hubId)
        // The row has changed since `compare`. The next heartbeat finds the reason.
        if (at === undefined) return [hubId, { kind: 'other' }]
        return [hubId, { kind: 'held', until, isLatest: at === monotonic }]
      }),
    )
  }

  /** The hubs that this process holds. */
  async held(): Promise<HeldHub[]> {
    const { context, processId } = this.#ports
    const now = context.runtime.clock.now()
    const rows = await leasesOf(context.db.kysely, { processId, now })
    return rows.map(({ hub_id: hubId, session }) => ({ hubId, session }))
  }

  /**
   * Takes the leases of processes that are not in `present`: they have died or lost the broker. Takes only the hubs of
   * this process's share.
   */
  async takeFromAbsent(present: readonly string[], isOurs: (hubId: number) => boolean): Promise<void> {
    const { context, processId } = this.#ports
    const lost = await context.db.kysely
      .selectFrom('hub_sessions')
      .select(['hub_id', 'process_id'])
      .where('lease_until', '>', context.runtime.clock.now())
      .where('process_id', 'not in', present)
      .execute()
    for (const absent of new Set(lost.map((row) => row.process_id))) {
      const theirs = lost.filter((row) => row.process_id === absent && isOurs(row.hub_id))
      await this.#move(
        theirs.map(({ hub_id }) => hub_id),
        { from: absent, to: processId },
      )
    }
  }

  /** Hands this process's leases of these hubs to another process at one instant, so that a hub always has a holder. */
  handOver(hubIds: readonly number[], to: string): Promise<void> {
    return this.#move(hubIds, { from: this.#ports.processId, to })
  }

  /**
   * Locks the rows first, in the order for hellos (`answerHellos`); an update would lock them in the order of the
   * table.
   */
  async #move(hubIds: readonly number[], { from, to }: { from: string; to: string }): Promise<void> {
    const { lease_until } = this.#lease().lease
    const sorted = hubIds.toSorted((a, b) => a - b)
    for (let at = 0; at < sorted.length; at += HUBS_AT_ONCE)
      await this.#ports.context.db.transact(async (tx) => {
        const part = sorted.slice(at, at + HUBS_AT_ONCE)
        const ofFrom = tx.q.selectFrom('hub_sessions').select('hub_id').where('process_id', '=', from)
        await tx.forUpdate(ofFrom.where('hub_id', 'in', part).orderBy('hub_id')).execute()
        await tx.q
          .updateTable('hub_sessions')
          .set({ process_id: to, lease_until })
          .where('process_id', '=', from)
          .where('hub_id', 'in', part)
          .execute()
      })
  }

  #lease() {
    const { context, settings, processId } = this.#ports
    const now = context.runtime.clock.now()
    const lease_until = now + settings.leaseMs
    return {
      now,
      lease: { process_id: processId, lease_until, is_connected: 1, last_heard_at: now } as const,
    }
  }
}

const beatColumns = { hub_id: 'int', said_in: 'text', said: 'text', said_at: 'real' } as const
type BeatRow = ReturnType<typeof rowsOf>[number]

/** In the same order as hellos (`answerHellos`): a server locks rows of a large table in the order of the source. */
const rowsOf = (beats: readonly Beat[]) =>
  beats
    .toSorted((a, b) => a.hubId - b.hubId)
    .map(({ hubId, heartbeat: { session, health, monotonic } }) => ({
      hub_id: hubId,
      said_in: session,
      said: JSON.stringify(health),
      said_at: monotonic,
    }))

/** The session of a hub that is shut out counts as unknown. */
const storedBeats = statement(
  (_, { beats, now }: { beats: readonly BeatRow[]; now: number }, { kind }) => sql<StoredBeat>`
    select r.hub_id, session, process_id, lease_until, last_heard_at, is_connected, has_left,
      case when session = said_in then 1 else 0 end as is_known,
      case when health_monotonic > said_at or (health_monotonic is not null and health = said)
        then 1 else 0 end as is_old
    from ${recordset(kind, beatColumns, beats)} join hub_sessions on hub_sessions.hub_id = r.hub_id
    where exists (select 1 from hubs where hubs.id = r.hub_id and ${maySpeak(expressionBuilder<Tables, 'hubs'>(), now)})`,
)

const leasesOf = statement((q, at: { processId: string; now: number }) =>
  q
    .selectFrom('hub_sessions')
    .select(['hub_id', 'session'])
    .where('process_id', '=', at.processId)
    .where('lease_until', '>', at.now),
)

/** The will of a session arrived. */
export async function markDisconnected(q: Queries, hubId: number, session: string): Promise<void> {
  await q
    .updateTable('hub_sessions')
    .set({ is_connected: 0 })
    .where('hub_id', '=', hubId)
    .where('session', '=', session)
    .where('is_connected', '=', 1)
    .execute()
}

/** The hub's service has stopped normally: the hub is offline from now on. */
export const markLeft = (
  context: CloudContext,
  domain: HubDomain,
  { hubId, session }: HeldHub,
): Promise<void> =>
  context.db.transact(async (tx) => {
    await tx.q
      .updateTable('hub_sessions')
      .set({ is_connected: 0, has_left: 1 })
      .where('hub_id', '=', hubId)
      .where('session', '=', session)
      .execute()
    await domain.hubsHeard(tx, context, [{ hubId, health: null }])
  })
