import { z } from 'zod'
import type { Cancel } from '../../protocol/model/runtime.ts'
import type { Hello } from '../../protocol/mqtt/session.ts'
import { callTopic, goneTopic, hereTopic } from '../../protocol/mqtt/topics.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries } from '../platform/store/database.ts'
import { background } from '../platform/work/background.ts'

/**
 * Who speaks to a hub (SPEC §7): one process at a time, by a lease in `hub_sessions`. Leases spread the work and carry no
 * correctness, so that clocks of processes that differ by a little only cause some of it to be done twice.
 */
export interface LeaseHolder {
  processId: string
  leaseMs: number
}

/**
 * Records a hub's new session and takes its lease, unless another process holds it. Returns whether it is held now; the
 * row stays locked to the end of the transaction either way.
 */
export async function takeByHello(
  q: Queries,
  holder: LeaseHolder,
  hubId: number,
  hello: Hello,
  now: number,
): Promise<boolean> {
  const fresh = {
    session: hello.session,
    process_id: holder.processId,
    lease_until: now + holder.leaseMs,
    is_connected: 1,
    last_heard_at: now,
    software: hello.software,
  } as const
  const row = await q
    .insertInto('hub_sessions')
    .values({ hub_id: hubId, ...fresh, health: null, health_at: null })
    .onConflict((conflict) =>
      conflict
        .column('hub_id')
        .doUpdateSet(fresh)
        .where((eb) =>
          eb.or([
            eb('hub_sessions.process_id', '=', holder.processId),
            eb('hub_sessions.lease_until', '<=', now),
          ]),
        ),
    )
    .returning('hub_id')
    .executeTakeFirst()
  return row !== undefined
}

/** Whether a message of `session` renewed (or, where the holder is dead, moved) the lease; see `renew`. */
export type Renewal =
  | { kind: 'held' }
  /** Another process speaks to the hub, at least until then. */
  | { kind: 'other'; until: number }
  /** The recorded session is another one, or there is none: only a hello helps. */
  | { kind: 'unknown-session'; session: string | null }

/** Takes a heartbeat's news and renews the lease, or takes over one that has run out. `health` is JSON. */
export async function renew(
  q: Queries,
  holder: LeaseHolder,
  hubId: number,
  heartbeat: { session: string; health: string },
  now: number,
): Promise<Renewal> {
  const row = await q
    .updateTable('hub_sessions')
    .set({
      process_id: holder.processId,
      lease_until: now + holder.leaseMs,
      is_connected: 1,
      last_heard_at: now,
      health: heartbeat.health,
      health_at: now,
    })
    .where('hub_id', '=', hubId)
    .where('session', '=', heartbeat.session)
    .where((eb) => eb.or([eb('process_id', '=', holder.processId), eb('lease_until', '<=', now)]))
    .returning('hub_id')
    .executeTakeFirst()
  if (row) return { kind: 'held' }
  const known = await q
    .selectFrom('hub_sessions')
    .select(['session', 'process_id', 'lease_until'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  if (known && known.process_id !== holder.processId && known.lease_until > now)
    return { kind: 'other', until: known.lease_until }
  return { kind: 'unknown-session', session: known?.session ?? null }
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

/** The hubs that a process speaks to. */
export async function heldHubs(q: Queries, processId: string, now: number): Promise<Set<number>> {
  const rows = await q
    .selectFrom('hub_sessions')
    .select('hub_id')
    .where('process_id', '=', processId)
    .where('lease_until', '>', now)
    .execute()
  return new Set(rows.map((row) => row.hub_id))
}

/** The other processes that hold hubs, each with the end of its longest lease. */
export async function otherHolders(
  q: Queries,
  processId: string,
  now: number,
): Promise<{ processId: string; until: number }[]> {
  return q
    .selectFrom('hub_sessions')
    .select((eb) => ['process_id as processId', eb.fn.max('lease_until').as('until')])
    .where('process_id', '!=', processId)
    .where('lease_until', '>', now)
    .groupBy('process_id')
    .orderBy('process_id')
    .execute()
}

/**
 * Ends the leases of a process that has stopped or died, so that others need not wait for their end; not those that last
 * beyond `through`. Returns the hubs that it held.
 */
export async function releaseLeases(
  q: Queries,
  processId: string,
  now: number,
  through: number = Number.MAX_SAFE_INTEGER,
): Promise<number[]> {
  const rows = await q
    .updateTable('hub_sessions')
    .set({ lease_until: now })
    .where('process_id', '=', processId)
    .where('lease_until', '>', now)
    .where('lease_until', '<=', through)
    .returning('hub_id')
    .execute()
  return rows.map((row) => row.hub_id)
}

export interface PeersOptions {
  context: CloudContext
  processId: string
  /** How long a process that is asked may take to answer. */
  answerMs: number
  /** Publishes, where the broker is connected. */
  publish: (topic: string, message: object) => void
  /** The leases of these hubs were ended: they are anybody's. None where another process has ended them. */
  onReleased: (hubIds: readonly number[]) => void
}

const ProcessName = z.object({ process_id: z.string() })

/** The other cloud processes (SPEC §7): which of them have gone, and with them their leases. */
export class Peers {
  readonly topics: readonly string[] = [goneTopic, callTopic, hereTopic]
  readonly #options: PeersOptions
  readonly #own: z.infer<typeof ProcessName>
  /** Those that have answered since the last call. */
  readonly #alive = new Set<string>()
  #cancelCall: Cancel = () => {}

  constructor(options: PeersOptions) {
    this.#options = options
    this.#own = { process_id: options.processId }
  }

  get will(): { topic: string; payload: string } {
    return { topic: goneTopic, payload: JSON.stringify(this.#own) }
  }

  /** The broker was found: whoever holds a hub is asked whether it lives. Its will may have gone unheard. */
  connected(): void {
    background(this.#options.context, 'call of the other processes', () => this.#callAll())
  }

  disconnected(): void {
    this.#cancelCall()
  }

  /** Takes a message on one of `topics`. */
  receive(topic: string, message: unknown): void {
    const { context, processId, publish } = this.#options
    const other = ProcessName.safeParse(message).data?.process_id
    if (other === undefined) return
    if (topic === hereTopic) this.#alive.add(other)
    if (topic === callTopic && other === processId) publish(hereTopic, this.#own)
    // Where that one only lost its connection, it will find out when it is back.
    if (topic === goneTopic && other !== processId)
      background(context, 'leases of a process that is gone', () => this.#release(other))
  }

  /** Leaves this process's own hubs to the others. */
  async leave(): Promise<void> {
    const { context, processId, publish } = this.#options
    this.#cancelCall()
    await releaseLeases(context.db.kysely, processId, context.runtime.clock.now())
    publish(goneTopic, this.#own)
  }

  async #callAll(): Promise<void> {
    const { context, processId, answerMs, publish } = this.#options
    const { clock } = context.runtime
    const holders = await otherHolders(context.db.kysely, processId, clock.now())
    if (holders.length === 0) return
    this.#alive.clear()
    for (const holder of holders) publish(callTopic, { process_id: holder.processId })
    this.#cancelCall()
    this.#cancelCall = clock.after(answerMs, () =>
      background(context, 'processes that do not answer', () => this.#releaseSilent(holders)),
    )
  }

  /** Ends the leases of those that do not answer. One that lives all the same does no harm (SPEC §7). */
  async #releaseSilent(holders: readonly { processId: string; until: number }[]): Promise<void> {
    for (const { processId, until } of holders)
      if (!this.#alive.has(processId)) {
        this.#options.context.log.warn({ processId }, 'a process that held hubs does not answer')
        // What it has renewed meanwhile proves that it lives.
        await this.#release(processId, until)
      }
  }

  async #release(processId: string, through?: number): Promise<void> {
    const { context, onReleased } = this.#options
    onReleased(await releaseLeases(context.db.kysely, processId, context.runtime.clock.now(), through))
  }
}
