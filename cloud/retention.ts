import { sql, type RawBuilder } from 'kysely'
import type { CloudContext } from './platform/context.ts'
import { LAST_ACTIVE } from './commerce/orders/order-rows.ts'
import { KEEP_MS } from './platform/http/idempotency.ts'
import { deadLettersChanged } from './operations/alarms/hub-alarms.ts'
import { UNASKED_WINDOW_MS } from './people/staff/unasked-mails.ts'
import type { Media } from './platform/media/media.ts'
import type { Tx } from './platform/store/database.ts'
import { isPartitioned, singlesOf, tendPartitions } from './platform/store/partitions.ts'
import type { Tables } from './platform/store/schema.ts'
import { done, type Outcome, type WorkKinds } from './platform/work/runner.ts'

const PERIOD_MS = 3_600_000
/** The pause between two batches of a table that has more expired rows, in milliseconds. */
const PAUSE_MS = 50

/** Data that becomes useless with age. Orders, money, stock and the audit log are stored permanently. */
interface Rule {
  table: Extract<keyof Tables, string>
  key: readonly [string, ...string[]]
  kept: (settings: CloudContext['settings']) => number
  /** Selects the rows that are older than an instant and not needed otherwise. */
  isOver: (before: number) => RawBuilder<unknown>
  /** Processes the deleted values of a column, in the transaction that deletes them. */
  onDeleted?: {
    column: string
    each: (tx: Tx, parts: RetentionParts, value: never) => void | Promise<void>
  }
}

interface RetentionParts {
  context: CloudContext
  media: Pick<Media, 'remove'>
}

const records = ({ recordsKeptMs }: CloudContext['settings']): number => recordsKeptMs
const incidents = ({ incidentsKeptMs }: CloudContext['settings']): number => incidentsKeptMs

/** Tables that require their user's row: orders, money and the messages about them. */
const namedBy = [
  'orders',
  'payments',
  'processor_customers',
  'payment_methods',
  'ledger_accounts',
  'ledger_entries',
  'deal_redemptions',
  'notifications',
] as const satisfies (keyof Tables)[]

const rules: readonly Rule[] = [
  {
    table: 'telemetry',
    key: ['hub_id', 'epoch', 'seq'],
    kept: records,
    isOver: (before) => sql`at < ${before}`,
  },
  {
    table: 'temperatures',
    key: ['hub_id', 'fridge', 'at'],
    kept: incidents,
    isOver: (before) => sql`at < ${before}`,
  },
  {
    // A command without a recorded outcome has not finished.
    table: 'commands',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`finished_at < ${before}`,
  },
  {
    table: 'processor_events',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`received_at < ${before}`,
  },
  { table: 'sandbox_events', key: ['id'], kept: records, isOver: (before) => sql`delivered_at < ${before}` },
  {
    // Announced redemptions that no order uses.
    table: 'deal_redemptions',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`expires_at < ${before} and order_id is null and status <> 'completed'`,
  },
  {
    // Notices of an active order show that its customer has been notified (`notices.ts`).
    table: 'notifications',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`updated_at < ${before} and state in ('sent', 'failed') and not exists (
      select 1 from orders where orders.id = notifications.order_id
        and orders.processing_status <= ${LAST_ACTIVE})`,
  },
  { table: 'diagnoses', key: ['id'], kept: () => PERIOD_MS, isOver: (before) => sql`asked_at < ${before}` },
  { table: 'alarms', key: ['seq'], kept: incidents, isOver: (before) => sql`cleared_at < ${before}` },
  {
    table: 'events',
    key: ['seq'],
    kept: ({ eventsKeptMs }) => eventsKeptMs,
    isOver: (before) => sql`created_at < ${before} and position is not null`,
  },
  {
    table: 'task_runs',
    key: ['id'],
    kept: records,
    isOver: (before) => sql`started_at < ${before} and state <> 'STARTED'`,
  },
  {
    // A request that still holds its key renews it; a key this old belongs to a dead process.
    table: 'idempotency_keys',
    key: ['credential', 'key'],
    kept: () => KEEP_MS,
    isOver: (before) => sql`created_at <= ${before}`,
  },
  { table: 'sessions', key: ['id'], kept: () => 0, isOver: (before) => sql`expires_at <= ${before}` },
  { table: 'invitations', key: ['id'], kept: () => 0, isOver: (before) => sql`expires_at <= ${before}` },
  {
    table: 'unasked_mails',
    key: ['id'],
    kept: () => UNASKED_WINDOW_MS,
    isOver: (before) => sql`sent_at <= ${before}`,
  },
  {
    table: 'used_challenges',
    key: ['digest'],
    kept: () => 0,
    isOver: (before) => sql`expires_at <= ${before}`,
  },
  {
    table: 'dead_letters',
    key: ['id'],
    kept: incidents,
    isOver: (before) => sql`at < ${before}`,
    onDeleted: {
      column: 'hub_id',
      each: (tx, { context }, hubId: number) => deadLettersChanged(tx, context, hubId),
    },
  },
  {
    table: 'hub_streams',
    key: ['hub_id', 'stream', 'epoch'],
    kept: incidents,
    isOver: (before) => sql`created_at < ${before} and is_current = 0`,
  },
  {
    // A new guest can be created at any time. Guests that the books name are not deleted.
    table: 'users',
    key: ['id'],
    kept: ({ guestsKeptMs }) => guestsKeptMs,
    isOver: (before) =>
      sql`is_anonymous = 1 and deleted_at is null and updated_at < ${before} and ${sql.join(
        namedBy.map(
          (table) => sql`not exists (select 1 from ${sql.table(table)} as t where t.user_id = users.id)`,
        ),
        sql` and `,
      )}`,
    onDeleted: {
      column: 'profile_image_key',
      each: (tx, { media }, key: string | null) => (key === null ? undefined : media.remove(tx, key)),
    },
  },
]

/**
 * `retention` deletes expired rows, one batch per run, so that other transactions wait only briefly. `partitions` may wait
 * for a table, or read it for hours, so no deletion waits for it.
 */
export const retentionWork = (context: CloudContext, media: Pick<Media, 'remove'>): WorkKinds => ({
  retention: {
    recurring: rules.map(({ table }) => table),
    run: ({ subject }) => deleteOld({ context, media }, subject),
  },
  partitions: {
    recurring: rules.map(({ table }) => table).filter((table) => isPartitioned(context.db, table)),
    run: ({ subject }) => tend(context, subject),
  },
})

const ruleOf = (table: string): Rule | undefined => rules.find((one) => one.table === table)

async function tend({ db, runtime, settings }: CloudContext, table: string): Promise<Outcome> {
  const rule = ruleOf(table)
  if (!rule) return done
  const now = runtime.clock.now()
  await tendPartitions(db, rule.table, { now, keptMs: rule.kept(settings) })
  return { next: runtime.clock.now() + PERIOD_MS }
}

async function deleteOld(parts: RetentionParts, table: string): Promise<Outcome> {
  const { context } = parts
  const rule = ruleOf(table)
  if (!rule) return done
  const { db, runtime, settings } = context
  const now = runtime.clock.now()
  const keptMs = rule.kept(settings)
  let isMore = false
  for (const name of await singlesOf(db, rule.table))
    if ((await deleteBatch(parts, rule, { table: name, before: now - keptMs })) === settings.retentionBatch)
      isMore = true
  return { next: now + (isMore ? PAUSE_MS : PERIOD_MS) }
}

async function deleteBatch(
  parts: RetentionParts,
  { key, isOver, onDeleted }: Rule,
  { table, before }: { table: string; before: number },
): Promise<number> {
  const { db, settings } = parts.context
  const columns = sql.join(key.map((column) => sql.ref(column)))
  const deletion = sql`
    delete from ${sql.table(table)} where (${columns}) in (
      select ${columns} from ${sql.table(table)} where ${isOver(before)} limit ${settings.retentionBatch})
  `
  if (!onDeleted) return Number((await deletion.execute(db.kysely)).numAffectedRows ?? 0)
  return db.transact(async (tx) => {
    const column = sql.ref(onDeleted.column)
    const { rows } = await sql<{ value: never }>`${deletion} returning ${column} as value`.execute(tx.q)
    for (const value of new Set(rows.map((row) => row.value))) await onDeleted.each(tx, parts, value)
    return rows.length
  })
}
