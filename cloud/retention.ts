import { sql, type RawBuilder } from 'kysely'
import { sleep } from '../protocol/model/runtime.ts'
import type { CloudContext } from './platform/context.ts'
import { LAST_ACTIVE } from './commerce/orders/order-rows.ts'
import type { Queries } from './platform/store/database.ts'
import type { Tables } from './platform/store/schema.ts'

/** So many rows at once, and a pause between: nobody has to wait for long. */
const BATCH = 500
const PAUSE_MS = 50

/** What becomes useless with age. Orders, money, stock and the audit log are kept for ever. */
interface Rule {
  table: keyof Tables
  key: readonly [string, ...string[]]
  kept: (settings: CloudContext['settings']) => number
  /** Which rows are older than an instant, and not needed otherwise. */
  isOver: (before: number) => RawBuilder<unknown>
}

const records = ({ recordsKeptMs }: CloudContext['settings']): number => recordsKeptMs
const incidents = ({ incidentsKeptMs }: CloudContext['settings']): number => incidentsKeptMs

const rules: readonly Rule[] = [
  {
    table: 'telemetry',
    key: ['hub_id', 'epoch', 'seq'],
    kept: records,
    isOver: (before) => sql`at < ${before}`,
  },
  {
    table: 'commands',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`id < ${firstUuidOf(before)} and state <> 'sent'`,
  },
  {
    table: 'processor_events',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`received_at < ${before}`,
  },
  { table: 'sandbox_events', key: ['id'], kept: records, isOver: (before) => sql`delivered_at < ${before}` },
  {
    // Announcements that no order has taken up.
    table: 'deal_redemptions',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`expires_at < ${before} and order_id is null and status <> 'completed'`,
  },
  {
    // Those of an order that is under way say that its customer has been told (`order-notices.ts`).
    table: 'notifications',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`updated_at < ${before} and state in ('sent', 'failed') and not exists (
      select 1 from orders where orders.id = notifications.order_id
        and orders.processing_status <= ${LAST_ACTIVE})`,
  },
  {
    // The last word of each alarm says whether it is raised.
    table: 'alarms',
    key: ['id'],
    kept: incidents,
    isOver: (before) => sql`at < ${before} and exists (
      select 1 from alarms as later where later.hub_id = alarms.hub_id and later.code = alarms.code
        and later.device = alarms.device and later.id > alarms.id)`,
  },
  { table: 'dead_letters', key: ['id'], kept: incidents, isOver: (before) => sql`at < ${before}` },
  {
    table: 'hub_streams',
    key: ['hub_id', 'stream', 'epoch'],
    kept: incidents,
    isOver: (before) => sql`created_at < ${before} and is_current = 0`,
  },
]

/** Commands' ids are UUIDv7: they sort by their time. */
function firstUuidOf(instant: number): string {
  const hex = Math.max(0, Math.floor(instant)).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}`
}

/** Deletes what has been kept for its time, batch by batch. Returns how many rows of each table. */
export async function sweepOldRows({
  db,
  runtime,
  settings,
}: Pick<CloudContext, 'db' | 'runtime' | 'settings'>): Promise<Partial<Record<keyof Tables, number>>> {
  const now = runtime.clock.now()
  const counts: Partial<Record<keyof Tables, number>> = {}
  for (const rule of rules) {
    const before = now - rule.kept(settings)
    let deleted = await deleteBatch(db.kysely, rule, before)
    let count = deleted
    while (deleted === BATCH) {
      await sleep(runtime.clock, PAUSE_MS)
      deleted = await deleteBatch(db.kysely, rule, before)
      count += deleted
    }
    if (count > 0) counts[rule.table] = count
  }
  return counts
}

async function deleteBatch(q: Queries, { table, key, isOver }: Rule, before: number): Promise<number> {
  const columns = sql.join(key.map((column) => sql.ref(column)))
  const { numAffectedRows } = await sql`
    delete from ${sql.table(table)} where (${columns}) in (
      select ${columns} from ${sql.table(table)} where ${isOver(before)} limit ${BATCH})
  `.execute(q)
  return Number(numAffectedRows ?? 0)
}
