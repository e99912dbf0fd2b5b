import { sql } from 'kysely'
import type { Vitals } from '../../protocol/model/vitals.ts'
import { timestamp } from '../platform/calendar/timestamps.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import type { Beat } from './leases.ts'

const columns = {
  memory_bytes: 'int',
  disk_free_bytes: 'int',
  board_celsius: 'real',
  journal_bytes: 'int',
  link_errors: 'int',
  queue: 'int',
  restarts: 'int',
  clock_offset_ms: 'int',
} as const satisfies Record<keyof Vitals, string>

export const vitalNames = Object.keys(columns) as (keyof Vitals)[]

/** Records the figures of heartbeats that have any: in one statement, and none if no figure has changed noticeably. */
export async function recordVitals(tx: Tx, beats: readonly Beat[], now: number): Promise<void> {
  const rows = beats.flatMap(({ hubId, heartbeat: { vitals } }) => {
    if (!vitals) return []
    const { last_crash: crash, ...figures } = vitals
    return [
      {
        ...figures,
        hub_id: hubId,
        crashed_at: crash && Math.round(crash.at),
        crash_error: crash?.error ?? null,
      },
    ]
  })
  if (rows.length === 0) return
  const all = { hub_id: 'int', ...columns, crashed_at: 'int', crash_error: 'text' } as const
  const names = Object.keys(all).map((name) => sql.ref(name))
  const changes = Object.keys(all).map((name) => sql`${sql.ref(name)} = excluded.${sql.ref(name)}`)
  const source = recordset(
    tx.kind,
    all,
    rows.toSorted((a, b) => a.hub_id - b.hub_id),
  )
  await sql`
    insert into hub_vitals (at, ${sql.join(names)})
    select cast(${now} as bigint), ${sql.join(names)} from ${source} where true order by hub_id
    on conflict (hub_id) do update set at = excluded.at, ${sql.join(changes)}
  `.execute(tx.q)
}

/** The latest figures of hubs as the API shows them, by hub. */
export async function readVitals(q: Queries, hubIds: readonly number[]) {
  const rows = await q.selectFrom('hub_vitals').selectAll().where('hub_id', 'in', hubIds).execute()
  return new Map(
    rows.map(({ hub_id, at, crashed_at, crash_error: error, ...figures }) => [
      hub_id,
      {
        reported_at: timestamp(at),
        ...figures,
        last_crash: crashed_at === null ? null : { at: timestamp(crashed_at), error },
      },
    ]),
  )
}
