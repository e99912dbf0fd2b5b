import { sql } from 'kysely'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { CloudContext } from '../context.ts'
import type { CloudDatabase } from '../store/database.ts'
import { digestOf } from '../credentials/secrets.ts'
import { background } from '../work/background.ts'
import { recurring, type WorkKinds } from '../work/runner.ts'

export const WINDOW_MS = 60_000

/** Counts calls in fixed windows of a minute, in memory, so that no request waits. */
export interface RateLimiter {
  /**
   * Takes one call from the allowance of `caller` on `route`. Returns the number of calls in this window, including
   * this one. Returns null and takes nothing if none is left.
   */
  take(caller: string, route: string, limit: number): number | null
  /** The number of calls in this window. */
  used(caller: string, route: string): number
}

const windowOf = (clock: Clock): number => windowAt(clock.now())
const windowAt = (now: number): number => Math.floor(now / WINDOW_MS)

interface Count {
  /** The caller in the database: a digest, because a caller may be a person. */
  name: string
  route: string
  /** Calls that this process has admitted. */
  own: number
  /** The part of them that the database contains. */
  settled: number
  /** Calls that other processes have admitted, as far as the database has reported them. */
  others: number
}

/** For a single process. */
export const memoryRateLimiter = (clock: Clock): RateLimiter => new Counts(clock)

class Counts implements RateLimiter {
  readonly #clock: Clock
  #window: number
  /** By route, then by caller. */
  readonly #counts = new Map<string, Map<string, Count>>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.#window = windowOf(clock)
  }

  take(caller: string, route: string, limit: number): number | null {
    const callers = this.#callersOf(route)
    const count = callers.get(caller)
    if ((count === undefined ? 0 : count.own + count.others) >= limit) return null
    if (count === undefined) {
      callers.set(caller, { name: nameOf(caller), route, own: 1, settled: 0, others: 0 })
      return 1
    }
    count.own += 1
    return count.own + count.others
  }

  used(caller: string, route: string): number {
    const { own, others } = this.#callersOf(route).get(caller) ?? { own: 0, others: 0 }
    return own + others
  }

  /** The current window. Counts of other windows are dropped. */
  get window(): number {
    const now = windowOf(this.#clock)
    if (now !== this.#window) this.#counts.clear()
    return (this.#window = now)
  }

  /**
   * Counts of a window that the database does not fully contain. All processes sort them equally, because they lock
   * rows.
   */
  unsettled(window: number): Count[] {
    if (window !== this.window) return []
    const all = [...this.#counts.values()].flatMap((callers) => [...callers.values()])
    const open = all.filter(({ own, settled }) => own > settled)
    return open.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  }

  #callersOf(route: string): Map<string, Count> {
    void this.window
    const known = this.#counts.get(route)
    if (known) return known
    const callers = new Map<string, Count>()
    this.#counts.set(route, callers)
    return callers
  }
}

const nameOf = (caller: string): string => digestOf(caller).slice(0, 32)
const keyOf = ({ name, route }: Pick<Count, 'name' | 'route'>): string => `${route} ${name}`

/**
 * For processes that share a database. Each counts in memory, soon adds its counts to the database, and reads those of
 * the others. A caller is never refused within the limit. Beyond it, a caller gets at most the calls that the other
 * processes admit within `rateSettleMs` and the time of one statement. While the database is unavailable, each process
 * applies the limit separately.
 */
export class SharedRateLimiter implements RateLimiter {
  readonly #context: CloudContext
  readonly #counts: Counts
  #state: 'resting' | 'waiting' | 'settling' | 'stopped' = 'resting'

  constructor(context: CloudContext) {
    this.#context = context
    this.#counts = new Counts(context.runtime.clock)
  }

  take(caller: string, route: string, limit: number): number | null {
    const taken = this.#counts.take(caller, route, limit)
    if (taken !== null) this.#arm()
    return taken
  }

  used(caller: string, route: string): number {
    return this.#counts.used(caller, route)
  }

  stop(): void {
    this.#state = 'stopped'
  }

  #arm(): void {
    if (this.#state !== 'resting') return
    this.#state = 'waiting'
    this.#context.runtime.clock.after(this.#context.settings.rateSettleMs, () => {
      if (this.#state !== 'waiting') return
      this.#state = 'settling'
      background(this.#context, 'counts of calls', () =>
        this.settle().finally(() => {
          if (this.#state === 'stopped') return
          this.#state = 'resting'
          if (this.#counts.unsettled(this.#counts.window).length > 0) this.#arm()
        }),
      )
    })
  }

  /** Adds this process's calls to the database, and reads those of the others. */
  async settle(): Promise<void> {
    const { window } = this.#counts
    const unsettled = this.#counts
      .unsettled(window)
      .map((count) => ({ count, own: count.own, by: count.own - count.settled }))
    for (let first = 0; first < unsettled.length; first += BATCH)
      await this.#addUp(unsettled.slice(first, first + BATCH), window)
  }

  async #addUp(
    unsettled: readonly { count: Count; own: number; by: number }[],
    window: number,
  ): Promise<void> {
    const values = unsettled.map(
      ({ count: { name, route }, by }) => sql`(${name}, ${route}, ${sql.lit(window)}, ${sql.lit(by)})`,
    )
    // Each minute has its own sum: a process with a wrong clock adds to the others' counts and does not replace them.
    const { rows } = await sql<{ caller: string; route: string; count: number }>`
      insert into rate_limits as current (caller, route, minute, count)
      values ${sql.join(values)}
      on conflict (caller, route, minute) do update set count = current.count + excluded.count
      returning caller, route, count`.execute(this.#context.db.kysely)
    const sums = new Map(rows.map(({ caller, ...row }) => [keyOf({ ...row, name: caller }), row]))
    for (const { count, own } of unsettled) {
      const sum = sums.get(keyOf(count))
      if (!sum) continue
      count.settled = own
      count.others = Math.max(count.others, sum.count - own)
    }
  }
}

/** Counts per statement. Statements have at most 65,535 parameters. */
const BATCH = 1000

/** Deletes the counts of past windows. */
export async function purgeRateLimits({ kysely }: CloudDatabase, clock: Clock): Promise<void> {
  await kysely.deleteFrom('rate_limits').where('minute', '<', windowOf(clock)).execute()
}

const PURGE_MS = 3_600_000

/** Deletes old counts each hour. */
export const rateLimitWork = (context: CloudContext): WorkKinds => ({
  'http.counts': recurring(context, PURGE_MS, () => purgeRateLimits(context.db, context.runtime.clock)),
})

/** A caller's use of its allowance in this minute; null if none was left. */
export interface Allowance {
  limit: number
  used: number | null
  /** Seconds until it is full again. */
  resetSeconds: number
}

export function allowanceNow(clock: Clock, limit: number, used: number | null): Allowance {
  const now = clock.now()
  return { limit, used, resetSeconds: Math.ceil((WINDOW_MS - (now - windowAt(now) * WINDOW_MS)) / 1000) }
}

/** Adds the headers that name the limit to an answer: those of the IETF draft and the customary ones. */
export function addRateHeaders(
  headers: Record<string, string>,
  { limit, used, resetSeconds }: Allowance,
): void {
  const remaining = Math.max(0, limit - (used ?? limit))
  headers['RateLimit-Policy'] = `"default";q=${limit};w=${WINDOW_MS / 1000}`
  headers['RateLimit'] = `"default";r=${remaining};t=${resetSeconds}`
  headers['X-RateLimit-Limit'] = String(limit)
  headers['X-RateLimit-Remaining'] = String(remaining)
  if (used === null) headers['Retry-After'] = String(resetSeconds)
}
