import { sql } from 'kysely'
import type { TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Tx } from '../platform/store/database.ts'

/** Temperatures are stored as one value for each span of this length. */
export const SPAN_MS = 5 * 60_000

interface Span {
  fridge: number
  at: number
  min: number
  max: number
  sum: number
  samples: number
}

/** Adds a hub's readings to the history of its fridges. */
export async function recordTemperatures(
  tx: Tx,
  hubId: number,
  readings: readonly TelemetryEntry[],
): Promise<void> {
  const spans = new Map<string, Span>()
  for (const { fridge_number: fridge, at: readAt, celsius, min, max } of readings) {
    const at = Math.floor(readAt / SPAN_MS) * SPAN_MS
    const key = `${fridge} ${at}`
    const span = spans.get(key) ?? { fridge, at, min, max, sum: 0, samples: 0 }
    spans.set(key, {
      ...span,
      min: Math.min(span.min, min),
      max: Math.max(span.max, max),
      sum: span.sum + celsius,
      samples: span.samples + 1,
    })
  }
  for (const span of spans.values())
    await tx.q
      .insertInto('temperatures')
      .values({ hub_id: hubId, ...span })
      .onConflict((conflict) =>
        conflict.columns(['hub_id', 'fridge', 'at']).doUpdateSet({
          min: sql`case when excluded.min < temperatures.min then excluded.min else temperatures.min end`,
          max: sql`case when excluded.max > temperatures.max then excluded.max else temperatures.max end`,
          sum: sql`temperatures.sum + excluded.sum`,
          samples: sql`temperatures.samples + excluded.samples`,
        }),
      )
      .execute()
}
