import { sql } from 'kysely'
import type { Clock } from '../../../protocol/model/runtime.ts'
import type { CloudDatabase } from '../store/database.ts'

export const WINDOW_MS = 60_000

/** Counts calls in fixed windows of a minute. */
export interface RateLimiter {
  /**
   * Takes one call from the allowance of `caller` on `route`. Returns the number of calls in this window, this one included;
   * null where none is left, and then nothing is taken.
   */
  take(caller: string, route: string, limit: number): Promise<number | null>
  /** The number of calls in this window. */
  used(caller: string, route: string): Promise<number>
}

export const windowOf = (clock: Clock): number => Math.floor(clock.now() / WINDOW_MS)

/** For a single process. */
export function memoryRateLimiter(clock: Clock): RateLimiter {
  let window = windowOf(clock)
  const counts = new Map<string, number>()
  function used(caller: string, route: string): number {
    if (windowOf(clock) !== window) {
      window = windowOf(clock)
      counts.clear()
    }
    return counts.get(`${route} ${caller}`) ?? 0
  }
  return {
    take(caller, route, limit) {
      const count = used(caller, route) + 1
      if (count > limit) return Promise.resolve(null)
      counts.set(`${route} ${caller}`, count)
      return Promise.resolve(count)
    },
    used: (caller, route) => Promise.resolve(used(caller, route)),
  }
}

/** For processes that share a database: the limit holds across all of them. */
export function databaseRateLimiter(db: CloudDatabase, clock: Clock): RateLimiter {
  return {
    async take(caller, route, limit) {
      const { rows } = await sql<{ count: number }>`
        insert into rate_limits as current (caller, route, minute, count)
        values (${caller}, ${route}, ${windowOf(clock)}, 1)
        on conflict (caller, route) do update set
          minute = excluded.minute,
          count = case when current.minute = excluded.minute then current.count + 1 else 1 end
        where current.minute <> excluded.minute or current.count < ${limit}
        returning count`.execute(db.kysely)
      return rows[0]?.count ?? null
    },
    async used(caller, route) {
      const row = await db.kysely
        .selectFrom('rate_limits')
        .select('count')
        .where('caller', '=', caller)
        .where('route', '=', route)
        .where('minute', '=', windowOf(clock))
        .executeTakeFirst()
      return row?.count ?? 0
    },
  }
}

/** Deletes the counts of past windows. */
export async function purgeRateLimits({ kysely }: CloudDatabase, clock: Clock): Promise<void> {
  await kysely.deleteFrom('rate_limits').where('minute', '<', windowOf(clock)).execute()
}

/** The headers of every answer that name its limit: the IETF draft's and the customary ones. */
export function rateHeaders(clock: Clock, limit: number, used: number | null): Record<string, string> {
  const remaining = Math.max(0, limit - (used ?? limit))
  const resetSeconds = Math.ceil(((windowOf(clock) + 1) * WINDOW_MS - clock.now()) / 1000)
  return {
    'RateLimit-Policy': `"default";q=${limit};w=${WINDOW_MS / 1000}`,
    RateLimit: `"default";r=${remaining};t=${resetSeconds}`,
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    ...(used === null && { 'Retry-After': String(resetSeconds) }),
  }
}
