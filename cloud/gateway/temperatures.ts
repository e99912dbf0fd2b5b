import { sql, type Selectable } from 'kysely'
import type { TelemetryEntry } from '../../protocol/mqtt/hub-entries.ts'
import type { Tx } from '../platform/store/database.ts'
import type { Tables } from '../platform/store/schema.ts'

/** Temperatures are stored as one value for each span of this length. */
export const SPAN_MS = 5 * 60_000

type Span = Omit<Selectable<Tables['temperatures']>, 'hub_id'> & { last_at: number }

/**
 * Adds a hub's readings to the history of its fridges. A repeated reading changes nothing: after a cursor was set back
 * (SPEC §4), a hub sends readings again. A hub sends the readings of a fridge in the order of time, except a late one.
 */
export async function recordTemperatures(
  tx: Tx,
  hubId: number,
  readings: readonly TelemetryEntry[],
  { isLate = false }: { isLate?: boolean } = {},
): Promise<void> {
  const spans = new Map<string, Span>()
  const known = isLate ? new Map<string, number>() : await lastReadings(tx, hubId, readings)
  for (const { fridge_number: fridge, at: readAt, celsius, min, max } of readings) {
    const [at, last_at] = [spanOf(readAt), Math.round(readAt)]
    const key = keyOf({ fridge, at })
    if (last_at <= (known.get(key) ?? -Infinity)) continue
    known.set(key, last_at)
    const span = spans.get(key) ?? { fridge, at, min, max, sum: 0, samples: 0, last_at }
    spans.set(key, {
      ...span,
      min: Math.min(span.min, min),
      max: Math.max(span.max, max),
      sum: span.sum + celsius,
      samples: span.samples + 1,
      last_at: Math.max(span.last_at, last_at),
    })
  }
  if (spans.size === 0) return
  await tx.q
    .insertInto('temperatures')
    .values([...spans.values()].map((span) => ({ hub_id: hubId, ...span })))
    .onConflict((conflict) =>
      conflict.columns(['hub_id', 'fridge', 'at']).doUpdateSet({
        min: sql`case when excluded.min < temperatures.min then excluded.min else temperatures.min end`,
        max: sql`case when excluded.max > temperatures.max then excluded.max else temperatures.max end`,
        sum: sql`temperatures.sum + excluded.sum`,
        samples: sql`temperatures.samples + excluded.samples`,
        last_at: sql`case when temperatures.last_at > excluded.last_at then temperatures.last_at else excluded.last_at end`,
      }),
    )
    .execute()
}

const spanOf = (at: number): number => Math.floor(at / SPAN_MS) * SPAN_MS
const keyOf = ({ fridge, at }: Pick<Span, 'fridge' | 'at'>): string => `${fridge} ${at}`

/** The last reading of each stored span. */
async function lastReadings(
  tx: Tx,
  hubId: number,
  readings: readonly TelemetryEntry[],
): Promise<Map<string, number>> {
  if (readings.length === 0) return new Map()
  const rows = await tx.q
    .selectFrom('temperatures')
    .select(['fridge', 'at', 'last_at'])
    .where('hub_id', '=', hubId)
    .where('fridge', 'in', [...new Set(readings.map(({ fridge_number }) => fridge_number))])
    .where('at', 'in', [...new Set(readings.map(({ at }) => spanOf(at)))])
    .where('last_at', 'is not', null)
    .execute()
  return new Map(rows.map((row) => [keyOf(row), row.last_at!]))
}
