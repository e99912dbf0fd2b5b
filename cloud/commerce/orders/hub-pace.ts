import { sql } from 'kysely'
import type { Instant } from '../../platform/store/table.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'

/** Where a hub has dispensed nothing yet. */
export const TYPICAL_UNIT_MS = 15_000

/** The weight of the last order once there are enough of them; the first ones count alike. */
const WEIGHT = 0.1

/** How long a hub takes for a unit, in milliseconds. */
export async function hubPace(q: Queries, hubId: number): Promise<number> {
  const pace = await q
    .selectFrom('hub_paces')
    .select('unit_ms')
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return pace?.unit_ms ?? TYPICAL_UNIT_MS
}

export interface Prepared {
  hubId: number
  /** Both by the hub's own clock: the reports may arrive long after, and together. */
  beganAt: number | null
  readyAt: number
  units: number
  /** An order that took longer was held up by something else, or the clock was set meanwhile. */
  longestMs: number
}

/** Takes down how long an order took. */
export async function measurePace(tx: Tx, prepared: Prepared, now: Instant): Promise<void> {
  const { hubId, beganAt, readyAt, units, longestMs } = prepared
  const tookMs = beganAt === null ? 0 : readyAt - beganAt
  if (units <= 0 || tookMs <= 0 || tookMs > longestMs) return
  await tx.q
    .insertInto('hub_paces')
    .values({ hub_id: hubId, unit_ms: tookMs / units, samples: 1, updated_at: now })
    .onConflict((conflict) =>
      conflict.column('hub_id').doUpdateSet({
        unit_ms: sql`hub_paces.unit_ms + (excluded.unit_ms - hub_paces.unit_ms)
          * case when hub_paces.samples < ${sql.lit(1 / WEIGHT)} then 1.0 / (hub_paces.samples + 1) else ${sql.lit(WEIGHT)} end`,
        samples: sql`hub_paces.samples + 1`,
        updated_at: now,
      }),
    )
    .execute()
}
