import { z } from 'zod'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Heartbeat, Hello } from '../../protocol/mqtt/session.ts'
import { callTopic, goneTopic, hereTopic } from '../../protocol/mqtt/topics.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewaySettings } from '../platform/settings/settings.ts'
import type { Queries } from '../platform/store/database.ts'
import { background } from '../platform/work/background.ts'

export interface LeaseKeeperPorts {
  context: CloudContext
  settings: GatewaySettings
  /** Names this life of this process: unique to it. */
  processId: string
  /** Publishes, where the broker is connected. */
  publish: (topic: string, message: object) => void
  /** The leases of these hubs were ended: they are anybody's. None where another process has ended them. */
  onReleased: (hubIds: readonly number[]) => void
}

/** Whether a heartbeat renewed the lease, or moved it to this process where its holder's has run out. */
export type Renewal =
  | { kind: 'held' }
  /** Another process speaks to the hub, at least until then. */
  | { kind: 'other'; until: number }
  /** The recorded session is another one, or there is none: only a hello helps. */
  | { kind: 'unknown-session'; session: string | null }

const ProcessName = z.object({ process_id: z.string() })

/**
 * Who speaks to a hub (SPEC §7): one process at a time, by a lease in `hub_sessions`. This takes and renews the leases of
 * this process, and ends those of processes that have gone. Leases spread the work and carry no correctness, so that
 * clocks of processes that differ by a little only cause some of it to be done twice.
 */
export class LeaseKeeper {
  /** Where the processes talk to one another. */
  readonly topics: readonly string[] = [goneTopic, callTopic, hereTopic]
  readonly will: { topic: string; payload: string }
  readonly #ports: LeaseKeeperPorts
  readonly #own: z.infer<typeof ProcessName>
  /** The processes that have answered since the last call. */
  readonly #alive = new Set<string>()
  #cancelCall: Cancel = () => {}

  constructor(ports: LeaseKeeperPorts) {
    this.#ports = ports
    this.#own = { process_id: ports.processId }
    this.will = { topic: goneTopic, payload: JSON.stringify(this.#own) }
  }

  /**
   * Records a hub's new session and takes its lease, unless another process holds it. Returns whether it is held now; the
   * row stays locked to the end of the transaction either way.
   */
  async takeByHello(q: Queries, hubId: number, hello: Hello): Promise<boolean> {
    const { session, software } = hello
    const { now, lease } = this.#lease()
    const row = await q
      .insertInto('hub_sessions')
      .values({ hub_id: hubId, ...lease, session, software, health: null, health_at: null })
      .onConflict((conflict) =>
        conflict
          .column('hub_id')
          .doUpdateSet({ ...lease, session, software })
          .where((eb) =>
            eb.or([
              eb('hub_sessions.process_id', '=', lease.process_id),
              eb('hub_sessions.lease_until', '<=', now),
            ]),
          ),
      )
      .returning('hub_id')
      .executeTakeFirst()
    return row !== undefined
  }

  /** Takes a heartbeat's news and renews the lease, or takes over one that has run out. */
  async renew(q: Queries, hubId: number, { session, health }: Heartbeat): Promise<Renewal> {
    const { now, lease } = this.#lease()
    const row = await q
      .updateTable('hub_sessions')
      .set({ ...lease, health: JSON.stringify(health), health_at: now })
      .where('hub_id', '=', hubId)
      .where('session', '=', session)
      .where((eb) => eb.or([eb('process_id', '=', lease.process_id), eb('lease_until', '<=', now)]))
      .returning('hub_id')
      .executeTakeFirst()
    if (row) return { kind: 'held' }
    const known = await q
      .selectFrom('hub_sessions')
      .select(['session', 'process_id', 'lease_until'])
      .where('hub_id', '=', hubId)
      .executeTakeFirst()
    if (known && known.process_id !== lease.process_id && known.lease_until > now)
      return { kind: 'other', until: known.lease_until }
    return { kind: 'unknown-session', session: known?.session ?? null }
  }

  /** The hubs that this process speaks to. */
  async heldHubs(): Promise<Set<number>> {
    const { context, processId } = this.#ports
    const rows = await context.db.kysely
      .selectFrom('hub_sessions')
      .select('hub_id')
      .where('process_id', '=', processId)
      .where('lease_until', '>', context.runtime.clock.now())
      .execute()
    return new Set(rows.map((row) => row.hub_id))
  }

  /** The broker was found: whoever holds a hub is asked whether it lives. Its will may have gone unheard. */
  connected(): void {
    background(this.#ports.context, 'call of the other processes', () => this.#callAll())
  }

  disconnected(): void {
    this.#cancelCall()
  }

  /** Takes a message on one of `topics`. */
  receive(topic: string, message: unknown): void {
    const { context, processId, publish } = this.#ports
    const other = ProcessName.safeParse(message).data?.process_id
    if (other === undefined) return
    if (topic === hereTopic) this.#alive.add(other)
    if (topic === callTopic && other === processId) publish(hereTopic, this.#own)
    // Where that one only lost its connection, it will find out when it is back.
    if (topic === goneTopic && other !== processId)
      background(context, 'leases of a process that is gone', () => this.#endLeases(other))
  }

  /** Leaves this process's own hubs to the others. */
  async leave(): Promise<void> {
    const { context, processId, publish } = this.#ports
    this.#cancelCall()
    await endLeases(context, processId)
    publish(goneTopic, this.#own)
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

  async #callAll(): Promise<void> {
    const { context, settings, processId, publish } = this.#ports
    const { clock } = context.runtime
    const holders = await context.db.kysely
      .selectFrom('hub_sessions')
      .select((eb) => ['process_id', eb.fn.max('lease_until').as('until')])
      .where('process_id', '!=', processId)
      .where('lease_until', '>', clock.now())
      .groupBy('process_id')
      .orderBy('process_id')
      .execute()
    if (holders.length === 0) return
    this.#alive.clear()
    for (const { process_id } of holders) publish(callTopic, { process_id })
    this.#cancelCall()
    this.#cancelCall = clock.after(settings.answerMs, () =>
      background(context, 'processes that do not answer', async () => {
        // One that lives all the same does no harm (SPEC §7).
        for (const { process_id, until } of holders)
          if (!this.#alive.has(process_id)) {
            context.log.warn({ processId: process_id }, 'a process that held hubs does not answer')
            // What it has renewed meanwhile proves that it lives.
            await this.#endLeases(process_id, until)
          }
      }),
    )
  }

  async #endLeases(processId: string, through?: number): Promise<void> {
    const { context, onReleased } = this.#ports
    onReleased(await endLeases(context, processId, through))
  }
}

/**
 * Ends the leases of a process that has stopped or died, so that others need not wait for their end; not those that last
 * beyond `through`. Returns the hubs that it held.
 */
async function endLeases(
  { db, runtime }: CloudContext,
  processId: string,
  through: number = Number.MAX_SAFE_INTEGER,
): Promise<number[]> {
  const now = runtime.clock.now()
  const rows = await db.kysely
    .updateTable('hub_sessions')
    .set({ lease_until: now })
    .where('process_id', '=', processId)
    .where('lease_until', '>', now)
    .where('lease_until', '<=', through)
    .returning('hub_id')
    .execute()
  return rows.map((row) => row.hub_id)
}

/** The session that was recorded last. */
export async function readSession(q: Queries, hubId: number): Promise<string | undefined> {
  const row = await q
    .selectFrom('hub_sessions')
    .select('session')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return row?.session
}

/** The will of a session has come. */
export async function markDisconnected(q: Queries, hubId: number, session: string): Promise<void> {
  await q
    .updateTable('hub_sessions')
    .set({ is_connected: 0 })
    .where('hub_id', '=', hubId)
    .where('session', '=', session)
    .where('is_connected', '=', 1)
    .execute()
}
