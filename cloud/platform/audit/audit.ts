import { sql, type RawBuilder, type Selectable, type SqlBool } from 'kysely'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { timestamp } from '../calendar/days.ts'
import { csvLine } from '../csv.ts'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import { isLike, prefixPattern } from '../store/like.ts'
import { statement } from '../store/statement.ts'

/** An action of a person or program on hardware, money or credentials. The log is append-only. */
export interface AuditRecord {
  /** The caller, for example `OwnerCredential.actor`. */
  actor: string
  /** For example `controls.open_bin`, `orders.refund`, `keys.create`. */
  action: string
  hubId: number | null
  /** The target: `bin-2`, `order-17`. */
  object: string
  /** `executed`, `refused`, `failed`, `unknown`, … */
  result: string
  detail?: Readonly<Record<string, unknown>>
}

/** Rows per statement. SQLite accepts 32,766 values, and a dead process may leave any number of commands open. */
const ROWS_AT_ONCE = 1000

/** Compiled once, because every command to a hub's hardware ends with one. */
const insertOne = statement((q, row: ReturnType<typeof rowOf>) =>
  q.insertInto('audit_log').values({
    at: row.at,
    actor: row.actor,
    action: row.action,
    hub_id: row.hub_id,
    object: row.object,
    result: row.result,
    detail: row.detail,
  }),
)

export async function appendAudit(
  q: Queries,
  { clock }: Pick<Runtime, 'clock'>,
  record: AuditRecord,
): Promise<void> {
  await insertOne(q, rowOf(record, clock.now()))
}

const rowOf = ({ actor, action, hubId, object, result, detail }: AuditRecord, at: number) => ({
  at,
  actor,
  action,
  hub_id: hubId,
  object,
  result,
  detail: JSON.stringify(detail ?? {}),
})

export async function appendAudits(
  q: Queries,
  { clock }: Pick<Runtime, 'clock'>,
  records: readonly AuditRecord[],
): Promise<void> {
  const at = clock.now()
  const rows = records.map((record) => rowOf(record, at))
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE)
    await q
      .insertInto('audit_log')
      .values(rows.slice(first, first + ROWS_AT_ONCE))
      .execute()
}

export interface AuditFilter {
  hubId?: number | undefined
  /** Records of this owner: about its orders, its hubs while it owned them, its keys, and the owner itself. */
  ownerId?: number | undefined
  /** Inclusive; milliseconds since the Unix epoch. */
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
  /** An exact name, or a prefix of names up to a dot: `controls.`. */
  action?: string | undefined
  actor?: string | undefined
  object?: string | undefined
  /** The only hubs of these records, null for records without a hub. Few of them are read hub by hub. */
  hubs?: readonly (number | null)[] | undefined
  /** Further conditions on a row of `audit_log`. */
  conditions?: readonly RawBuilder<SqlBool>[]
  /** Records before the one with this id. */
  before?: number | undefined
  limit: number
}

interface ListedRecord {
  id: number
  at: string
  actor: string
  action: string
  hub_id: number | null
  object: string
  result: string
  detail: Record<string, unknown>
}

/** The columns of a record, in the order of the CSV. */
export const auditColumns = ['id', 'at', 'actor', 'action', 'hub_id', 'object', 'result', 'detail'] as const

export const auditCsvLine = ({ detail, ...record }: ListedRecord): string => {
  const cells = { ...record, detail: JSON.stringify(detail) }
  return csvLine(auditColumns.map((column) => cells[column]))
}

/** Hubs or actions that are read one by one. A database limits the parts of a statement. */
const MAX_PARTS = 100

/**
 * The newest records that match the filter, oldest first. One index has the records of each hub, action, actor and target
 * in the order of time, so the cost of a page does not grow with the log.
 */
export async function listAudit(q: Queries, filter: AuditFilter): Promise<ListedRecord[]> {
  const { hubId, ownerId, since, until, actor, object, before, limit } = filter
  const parts = await partsOf(q, filter)
  if (parts.length === 0) return []
  const conditions: RawBuilder<SqlBool>[] = [...(filter.conditions ?? [])]
  // A part of a hub has the condition already. `is true` keeps the index of the hub from being used in place of a part's.
  // PostgreSQL sorts the whole range if it expects few rows; this form does not change its estimate.
  if (hubId !== undefined && [filter.action, actor, object].some((each) => each !== undefined))
    conditions.push(sql`(hub_id = ${hubId}) is true`)
  if (ownerId !== undefined) conditions.push(ofOwner(ownerId))
  if (since !== undefined) conditions.push(sql`at >= ${since}`)
  if (until !== undefined) conditions.push(sql`at < ${until}`)
  if (actor !== undefined) conditions.push(sql`actor = ${actor}`)
  if (object !== undefined) conditions.push(sql`object = ${object}`)
  if (before !== undefined) conditions.push(await isBefore(q, before))
  const selected = parts.map(
    (part, index) => sql`select * from (
      select * from audit_log where ${sql.join([part, ...conditions], sql` and `)}
      order by at desc, id desc limit ${sql.lit(limit)}) as ${sql.ref(`part${index}`)}`,
  )
  const { rows } = await sql<Selectable<Tables['audit_log']>>`
    select * from (${sql.join(selected, sql` union all `)}) as matching
    order by at desc, id desc limit ${sql.lit(limit)}`.execute(q)
  return rows.toReversed().map((row) => ({
    id: row.id,
    at: timestamp(row.at),
    actor: row.actor,
    action: row.action,
    hub_id: row.hub_id,
    object: row.object,
    result: row.result,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  }))
}

/** The parts of a list, each with one index: an action each, or a hub each. */
async function partsOf(
  q: Queries,
  { action, actor, object, hubId, hubs: all = [] }: AuditFilter,
): Promise<RawBuilder<SqlBool>[]> {
  const hubs = hubId === undefined ? all : [hubId]
  const isNarrow = actor !== undefined || object !== undefined
  if (action !== undefined) {
    if (!action.endsWith('.')) return [sql`action = ${action}`]
    if (isNarrow) return [isLike('action', prefixPattern(action))]
    const { rows } = await actionNames.execute(q)
    return rows.filter(({ name }) => name.startsWith(action)).map(({ name }) => sql`action = ${name}`)
  }
  if (isNarrow || hubs.length === 0 || hubs.length > MAX_PARTS) return [sql`1 = 1`]
  return hubs.map((hub) => (hub === null ? sql`hub_id is null` : sql`hub_id = ${hub}`))
}

/** The names of all actions in the log. Reads one entry of an index for each. */
const actionNames = sql<{ name: string }>`
  with recursive names (name) as (
    select min(action) from audit_log
    union all
    select (select min(l.action) from audit_log as l where l.action > names.name) from names
    where names.name is not null)
  select name from names where name is not null`

async function isBefore(q: Queries, id: number): Promise<RawBuilder<SqlBool>> {
  const known = await q.selectFrom('audit_log').select('at').where('id', '=', id).executeTakeFirst()
  return known ? sql`(at, id) < (${known.at}, ${id})` : sql`id < ${id}`
}

/** The number of the order that a record is about (`order-17`); null if it is about something else. */
const orderOfRecord = sql`case
  when audit_log.object like 'order-%' and length(audit_log.object) between 7 and 21
    and ltrim(substr(audit_log.object, 7), '0123456789') = ''
  then cast(substr(audit_log.object, 7) as bigint) end`

/**
 * Whether the order of a record belongs to an owner: the order's owner, or the owner of its last payment if the order was
 * never sold. Null for a record about something else.
 */
const hasOrderOf = (owner: RawBuilder<unknown>): RawBuilder<SqlBool> => sql`
  (select coalesce(o.owner_id, (select p.owner_id from payments as p where p.order_id = o.id order by p.id desc limit 1))
    = ${owner} from orders as o where o.id = ${orderOfRecord})`

/** Whether the hub of a record belonged to an owner at the record's time. */
const hasHubOf = (owner: RawBuilder<unknown>): RawBuilder<SqlBool> => sql`
  (exists (select 1 from hubs as h where h.id = audit_log.hub_id and h.owner_id = ${owner}
    and audit_log.at >= h.owned_since)
  or exists (select 1 from former_owners as f where f.hub_id = audit_log.hub_id and f.owner_id = ${owner}
    and audit_log.at >= f.since and audit_log.at < f.until))`

/** Whether a record belongs to the present owner of its hub. */
export const ofPresentOwner: RawBuilder<SqlBool> = sql`exists (
  select 1 from hubs as present where present.id = audit_log.hub_id
    and coalesce(${hasOrderOf(sql`present.owner_id`)}, ${hasHubOf(sql`present.owner_id`)}))`

/** Whether a record belongs to an owner: by its order, else by its hub or its API key. */
export const ofOwner = (ownerId: number): RawBuilder<boolean> => sql<boolean>`coalesce(
  ${hasOrderOf(sql`${ownerId}`)}, ${hasHubOf(sql`${ownerId}`)}
  or (audit_log.hub_id is null and exists (select 1 from api_keys as k where k.owner_id = ${ownerId}
    and (audit_log.actor = 'key:' || k.prefix or audit_log.object = 'key-' || k.prefix)))
  or (audit_log.hub_id is null and audit_log.object = ${`owner-${ownerId}`}))`
