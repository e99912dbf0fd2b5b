import { sql } from 'kysely'
import { refreshSales } from './commerce/analytics/refresh-sales.ts'
import { StoredReport } from './gateway/desired-state.ts'
import { LAST_ACTIVE } from './commerce/orders/order-rows.ts'
import { localDay } from './platform/calendar/zone.ts'
import type { Tx } from './platform/store/database.ts'
import type { Tables } from './platform/store/schema.ts'

/** A due time, or the start of a time limit. */
interface Awaited {
  table: Extract<keyof Tables, string>
  column: string
  /** Rows that are not finished. */
  where?: ReturnType<typeof sql>
}

const awaited: readonly Awaited[] = [
  { table: 'due_work', column: 'due_at' },
  { table: 'due_work', column: 'leased_until' },
  { table: 'task_runs', column: 'leased_until', where: sql`state = 'STARTED'` },
  { table: 'idempotency_keys', column: 'locked_until' },
  { table: 'webhook_deliveries', column: 'next_attempt_at' },
  { table: 'webhook_endpoints', column: 'failing_since' },
  { table: 'alarms', column: 'quiet_since', where: sql`cleared_at is null` },
  { table: 'alarms', column: 'raised_at', where: sql`cleared_at is null` },
  { table: 'hub_sessions', column: 'lease_until' },
  { table: 'hub_sessions', column: 'last_heard_at' },
  { table: 'money_operations', column: 'give_up_at' },
  { table: 'commands', column: 'created_at', where: sql`state = 'sent'` },
  { table: 'hubs', column: 'claim_expires_at' },
  {
    table: 'rollout_hubs',
    column: 'given_at',
    where: sql`state not in ('succeeded', 'rolled_back', 'skipped')`,
  },
  { table: 'rollouts', column: 'ended_at' },
  ...(['touched_at', 'preparing_at', 'ready_at'] as const).map((column) => ({
    table: 'orders' as const,
    column,
    where: sql`processing_status <= ${LAST_ACTIVE}`,
  })),
]

/**
 * Corrects stored times after a clock that was ahead was put back by `byMs`. Times that it stamped lie in the
 * future and would delay everything that waits for them: leases of dead processes, due work, deadlines of
 * orders. The times of all unfinished rows move back by `byMs`, at most to `now`. Times from before the fault
 * may then come too early, as they did while the clock was ahead.
 */
export async function putBack(tx: Tx, now: number, byMs: number): Promise<void> {
  for (const { table, column, where = sql`true` } of awaited)
    await sql`update ${sql.table(table)} set ${sql.ref(column)} = ${movedBack(column, now, byMs)}
      where ${sql.ref(column)} > ${now} and ${where}`.execute(tx.q)
  await putSalesBack(tx, now, byMs)
  await putMorningsBack(tx, now)
  await putReportsBack(tx, now, byMs)
}

/** A report in the future would never become too old. Its hub would keep its wave open, and with it all rollouts. */
async function putReportsBack({ q }: Tx, now: number, byMs: number): Promise<void> {
  const rows = await q
    .selectFrom('hub_updates')
    .select(['hub_id', 'reported'])
    .where('reported', 'is not', null)
    .orderBy('hub_id')
    .execute()
  for (const { hub_id, reported } of rows) {
    const report = StoredReport.parse(JSON.parse(reported!))
    if (report.since === undefined || report.since <= now) continue
    const since = Math.max(now, report.since - byMs)
    await q
      .updateTable('hub_updates')
      .set({ reported: JSON.stringify({ ...report, since }) })
      .where('hub_id', '=', hub_id)
      .execute()
  }
}

/** A day in the future would silence the morning mail until then. */
async function putMorningsBack({ q }: Tx, now: number): Promise<void> {
  const hubs = await q
    .selectFrom('hubs')
    .select(['id', 'timezone', 'morning_mail_on'])
    .orderBy('id')
    .execute()
  for (const { id, timezone, morning_mail_on: last } of hubs) {
    const today = localDay(timezone, now)
    if ((last ?? '') > today)
      await q.updateTable('hubs').set({ morning_mail_on: today }).where('id', '=', id).execute()
  }
}

const movedBack = (column: string, now: number, byMs: number) =>
  sql`case when ${sql.ref(column)} - ${byMs} > ${now} then ${sql.ref(column)} - ${byMs} else ${now} end`

/** The time of sale also determines the day to which an order counts. */
async function putSalesBack(tx: Tx, now: number, byMs: number): Promise<void> {
  const { rows } = await sql<{ id: number; hub_id: number }>`
    update orders set queued_at = ${movedBack('queued_at', now, byMs)}
    where queued_at > ${now} and processing_status <= ${LAST_ACTIVE}
    returning id, hub_id`.execute(tx.q)
  const byHub = new Map<number, number[]>()
  for (const { id, hub_id } of rows) byHub.set(hub_id, [...(byHub.get(hub_id) ?? []), id])
  for (const hubId of [...byHub.keys()].sort((a, b) => a - b))
    await refreshSales(
      tx,
      byHub.get(hubId)!.sort((a, b) => a - b),
    )
}
