import { isRetryable } from '../platform/store/database.ts'
import type { CloudContext } from '../platform/context.ts'
import type { GatewayLimits } from '../platform/settings/gateway-limits.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { isOutage } from '../platform/store/outage.ts'
import type { HubDomain, StalledPart } from './domain.ts'

interface Stall {
  error: string
  /** Milliseconds since the Unix epoch. */
  since: number
}
/** `hub_sessions.stalled`. */
type Stalls = Partial<Record<StalledPart, Stall>>

const stallsOf = (stored: string | null): Stalls => (stored === null ? {} : (JSON.parse(stored) as Stalls))

/** Whether a stalled part stops sales. Telemetry alone does not. */
export const stopsSelling = (stored: string | null): boolean =>
  Object.keys(stallsOf(stored)).some((part) => part !== 'telemetry')

const words = {
  ledger: 'the hub has more to report, and nothing of it arrives: its network may drop large packets',
  outbox: 'the hub acknowledges nothing that the cloud sends: orders do not reach it',
} as const

export interface StallPorts {
  context: CloudContext
  settings: Pick<GatewayLimits, 'stallTries' | 'stallMs'>
  domain: HubDomain
  hubId: number
  /** Runs the work in the hub's mailbox. */
  post: (work: () => Promise<void>) => void
}

/** A longer silence means that the hub was offline; that time does not count. */
const GAP_MS = 60_000

/**
 * Detects streams that do not advance while their hub is online: entries cannot be applied, do not arrive, or are not
 * acknowledged. Then it raises the alarm `stream_stalled`, and nothing is sold there until the stream advances.
 */
export class StallWatch {
  readonly #ports: StallPorts
  /** Failures in a row. */
  readonly #failures = new Map<StalledPart, number>()
  /** The position of a stream, when it was last checked, and how long the hub has been online at that position. */
  readonly #still = new Map<'ledger' | 'outbox', { at: number; seenMs: number; forMs: number }>()
  /** The parts that are recorded as stalled; undefined until the first check. */
  #recorded: Set<StalledPart> | undefined

  constructor(ports: StallPorts) {
    this.#ports = ports
  }

  failures(part: StalledPart): number {
    return this.#failures.get(part) ?? 0
  }

  /** Runs work for a part of the connection, and counts its consecutive failures. */
  async watched<T>(part: StalledPart, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.#failed(part, error)
      throw error
    }
  }

  /** A message could not be applied or answered. An outage of the database concerns all hubs and does not count. */
  #failed(part: StalledPart, error: unknown): void {
    if (isOutage(error) || isRetryable(error)) return
    const count = this.failures(part) + 1
    this.#failures.set(part, count)
    if (count < this.#ports.settings.stallTries) return
    const text = error instanceof Error ? error.message : String(error)
    this.#raise(part, text.slice(0, 500))
  }

  /** Checks a stream at each heartbeat: its position, and whether more entries wait. */
  look(part: 'ledger' | 'outbox', at: number, isBehind: boolean): void {
    const seenMs = this.#ports.context.runtime.clock.monotonic()
    const still = this.#still.get(part)
    if (!isBehind || still?.at !== at) {
      this.#still.set(part, { at, seenMs, forMs: 0 })
      // A new epoch begins at 0, which is not an advance.
      if (!isBehind || (still && at > still.at)) this.advanced(part)
      return
    }
    const forMs = still.forMs + Math.min(seenMs - still.seenMs, GAP_MS)
    this.#still.set(part, { at, seenMs, forMs })
    if (forMs >= this.#ports.settings.stallMs) this.#raise(part, words[part])
  }

  /** A part works. */
  advanced(part: StalledPart): void {
    this.#failures.delete(part)
    if (this.#recorded && !this.#recorded.has(part)) return
    this.#ports.post(async () => {
      const { context, hubId } = this.#ports
      this.#recorded ??= await readParts(context.db.kysely, hubId)
      if (!this.#recorded.has(part)) return
      await this.#record(part, undefined)
      context.log.info({ hubId, part }, "a hub's stream advances again")
    })
  }

  #raise(part: StalledPart, error: string): void {
    if (this.#recorded?.has(part)) return
    this.#ports.post(async () => {
      const { context, hubId } = this.#ports
      this.#recorded ??= await readParts(context.db.kysely, hubId)
      if (this.#recorded.has(part)) return
      await this.#record(part, { error, since: context.runtime.clock.now() })
      context.log.error({ hubId, part, error }, "a hub's stream does not advance: nothing is sold there")
    })
  }

  async #record(part: StalledPart, stall: Stall | undefined): Promise<void> {
    const { context, domain, hubId } = this.#ports
    await context.db.transact(async (tx) => {
      await writeStall(tx, hubId, part, stall)
      await domain.streamStalled(tx, context, hubId, part, stall?.error)
      await domain.hubsHeard(tx, context, [{ hubId, health: null }])
    })
    if (stall) this.#recorded?.add(part)
    else this.#recorded?.delete(part)
  }
}

async function readParts(q: Queries, hubId: number): Promise<Set<StalledPart>> {
  const row = await q
    .selectFrom('hub_sessions')
    .select('stalled')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return new Set(Object.keys(stallsOf(row?.stalled ?? null)) as StalledPart[])
}

async function writeStall(tx: Tx, hubId: number, part: StalledPart, stall: Stall | undefined): Promise<void> {
  const row = await tx
    .forUpdate(tx.q.selectFrom('hub_sessions').select('stalled').where('hub_id', '=', hubId))
    .executeTakeFirst()
  const { [part]: _, ...others } = stallsOf(row?.stalled ?? null)
  const stalls: Stalls = stall ? { ...others, [part]: stall } : others
  await tx.q
    .updateTable('hub_sessions')
    .set({ stalled: Object.keys(stalls).length > 0 ? JSON.stringify(stalls) : null })
    .where('hub_id', '=', hubId)
    .execute()
}
