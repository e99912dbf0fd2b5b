import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { join } from 'node:path'
import { z } from 'zod'
import { appendAudit, type AuditRecord } from '../audit/audit.ts'
import { timestamp } from '../calendar/days.ts'
import type { CloudContext } from '../context.ts'
import type { Queries, Tx } from '../store/database.ts'
import { storedList } from '../stored-list.ts'
import { revokeApiKey } from './api-keys.ts'
import { listRoles, revokeRole } from './roles.ts'

/** An act in the audit log that ends a right or removes personal data. `at`: milliseconds since the Unix epoch. */
const Act = z.object({
  at: z.int(),
  action: z.string(),
  hub_id: z.int().nullable(),
  object: z.string(),
  /** The person of a role. */
  identity: z.string().optional(),
  /** The owner of the hub or of the API key, else the actor: they share the places of the file. */
  owner: z.string().optional(),
})
type Act = z.infer<typeof Act>

/** Executes an act again. Null: only a person can repeat it. */
const repeats: Readonly<
  Record<string, ((tx: Tx, context: CloudContext, act: Act) => Promise<unknown>) | null>
> = {
  'keys.revoke': ({ q }, { runtime }, { object }) => revokeApiKey(q, runtime, object.slice('key-'.length)),
  async 'roles.revoke'(tx, _context, { object, identity, at }) {
    const id = Number(object.slice('role-'.length))
    // A restored database gives the number of a lost role to another one.
    const known = (await listRoles(tx.q, identity)).some((role) => role.id === id && role.createdAt <= at)
    if (known) await revokeRole(tx, id)
  },
  'sessions.revoke': ({ q }, _context, { object, at }) =>
    q
      .deleteFrom('sessions')
      .where('identity', '=', object.slice('identity:'.length))
      .where('created_at', '<=', at)
      .execute(),
  // A board has used the claim code of the backup.
  'hubs.enroll': ({ q }, { settings }, { hub_id, at }) =>
    q
      .updateTable('hubs')
      .set({ claim_code_digest: null, claim_expires_at: null })
      .where('id', '=', hub_id ?? 0)
      // A restored database gives the number of a lost hub to another one. A later code is another one, too.
      .where('created_at', '<=', at)
      .where('claim_expires_at', '<=', at + settings.claimCodeMs)
      .execute(),
  'keys.rotate': null,
  'webhooks.rotate_secret': null,
  'contacts.remove': null,
  'passkeys.remove': null,
  'people.remove': null,
  'hubs.renew_password': null,
  'hubs.move': null,
  'hubs.retire': null,
  'users.erase': null,
}

/** The oldest backup of the schedule has 12 months. */
const STORED_MS = 400 * 86_400_000
/**
 * Stored acts of each action. An owner can add any number of acts to the log, and each start looks up all stored acts. Every
 * owner has a share of these places.
 */
const STORED_PER_ACTION = 1000
/** Rows of an action in one page, and pages of an action in one run. The next run reads the further rows. */
const PAGE_ROWS = 500
const PAGES = 4
/** Clocks of processes differ, and a row is visible only after its transaction. Each run reads these rows again. */
const OVERLAP_MS = 5 * 60_000
/** A failover loses the last transactions: a run after the first looks up only the newest acts. */
const PROBED_ACTS = 100
/** Acts of one statement. A database limits the parts of a statement. */
const ACTS_AT_ONCE = 100

/** A place in the audit log of one action. */
interface Position {
  at: number
  id: number
}

/**
 * Stores these acts in a file of this machine. A database may lack the latest acts, because it was restored or a replica
 * has taken over. The service repeats such an act if it can. The audit log then has the act again, with the actor `cloud` and
 * the result `executed`, or `lost` if a person must repeat it.
 *
 * Call the returned function at the start and regularly. Its first run looks up all stored acts: a database is restored
 * only while the service is stopped. Each run reads a limited number of rows, because owners write such rows.
 */
export function openActs(context: CloudContext, folder: string): () => Promise<void> {
  const { db, runtime } = context
  const file = storedList(join(folder, 'ended-rights.json'), Act)
  /** The start of the next run, by action. */
  let positions: ReadonlyMap<string, Position> | undefined

  return async () => {
    const now = runtime.clock.now()
    const since = now - STORED_MS
    let repeated = new Set<string>()
    // The record of its repetition replaces an act, also if a clock was ahead when the act happened.
    const readStored = () =>
      file.read().filter((act) => act.at >= since && !repeated.has(`${act.at} ${nameOf(act)}`))
    const stored = newestOf(readStored())
    if (!positions || (await lostOf(db.kysely, stored.slice(-PROBED_ACTS))).length > 0) {
      const lost = await lostOf(db.kysely, stored)
      if (lost.length > 0) await repeat(context, lost)
      repeated = new Set(lost.map((act) => `${act.at} ${nameOf(act)}`))
    }
    const known: Act[] = []
    const next = new Map<string, Position>()
    for (const action of Object.keys(repeats)) {
      const reached = positions?.get(action)
      const newest = reached?.at ?? stored.findLast((act) => act.action === action)?.at ?? since
      const start = { at: Math.max(since, Math.min(newest, now) - OVERLAP_MS), id: 0 }
      // The clock may have gone back.
      const position = reached && reached.at <= now ? reached : start
      const { acts, end } = await readActs(db.kysely, action, position)
      known.push(...acts)
      next.set(action, end ?? { at: now - OVERLAP_MS, id: 0 })
    }
    // Another process may have written the file since.
    file.write(newestOf([...readStored(), ...known]))
    positions = next
  }
}

async function repeat(context: CloudContext, lost: readonly Act[]): Promise<void> {
  const { db, runtime, log } = context
  await db.transact(async (tx) => {
    for (const act of lost) {
      const execute = repeats[act.action] ?? null
      await execute?.(tx, context, act)
      await appendAudit(tx.q, runtime, recordOf(act, execute ? 'executed' : 'lost'))
    }
  })
  log.warn({ acts: lost.map(nameOf) }, 'the database had lost acts: larder audit list --actor cloud')
}

const recordOf = (
  { action, hub_id: hubId, object, identity, at }: Act,
  result: 'executed' | 'lost',
): AuditRecord => ({
  actor: 'cloud',
  action,
  hubId,
  object,
  result,
  detail: { ...(identity && { identity }), reason: 'restored database', first_at: timestamp(at) },
})

const nameOf = ({ action, object, identity }: Act): string => [action, object, identity].join(' ').trim()

const byTime = (one: Act, other: Act): number =>
  one.at - other.at || (nameOf(one) < nameOf(other) ? -1 : Number(nameOf(one) > nameOf(other)))

/** The newest acts of each action, oldest first. The last act replaces earlier acts with its name. */
function newestOf(acts: readonly Act[]): Act[] {
  const byName = new Map(acts.toSorted(byTime).map((act) => [nameOf(act), act]))
  const newest = [...byName.values()].toSorted(byTime)
  return Object.keys(repeats)
    .flatMap((name) => sharesOf(newest.filter(({ action }) => action === name)))
    .toSorted(byTime)
}

/** The newest acts of each owner. An owner gets the places that owners with fewer acts leave. */
function sharesOf(acts: readonly Act[]): Act[] {
  const byOwner = new Map<string, Act[]>()
  for (const act of acts) {
    const own = byOwner.get(act.owner ?? '')
    if (own) own.push(act)
    else byOwner.set(act.owner ?? '', [act])
  }
  let places = STORED_PER_ACTION
  return [...byOwner.values()]
    .toSorted((one, other) => one.length - other.length)
    .flatMap((own, index) => {
      const share = Math.min(own.length, Math.floor(places / (byOwner.size - index)))
      places -= share
      return share === 0 ? [] : own.slice(-share)
    })
}

/** The acts that the audit log lacks. Each act is one look-up in the index of objects. */
async function lostOf(q: Queries, acts: readonly Act[]): Promise<Act[]> {
  const lost: Act[] = []
  for (let first = 0; first < acts.length; first += ACTS_AT_ONCE) {
    const some = acts.slice(first, first + ACTS_AT_ONCE)
    const lookUps = some.map((act, index) => sql`select ${sql.lit(index)} as place where ${isKnown(act)}`)
    const { rows } = await sql<{ place: number }>`${sql.join(lookUps, sql` union all `)}`.execute(q)
    const known = new Set(rows.map(({ place }) => place))
    lost.push(...some.filter((_, index) => !known.has(index)))
  }
  return lost
}

function isKnown({ at, action, object, identity }: Act): RawBuilder<SqlBool> {
  // The concatenation keeps the index of actions from being used.
  const conditions = [sql`object = ${object}`, sql`at >= ${at}`, sql`action || '' = ${action}`]
  // A restored database gives the number of a lost role to another one.
  if (identity !== undefined)
    conditions.push(sql`replace(detail, ${`"identity":${JSON.stringify(identity)}`}, '') <> detail`)
  return sql`exists (select 1 from audit_log where ${sql.join(conditions, sql` and `)})`
}

/** The owner of an act's hub, of the key that acted, or of the key that was changed. */
const OWNER = sql<number | null>`coalesce(
  (select owner_id from hubs where hubs.id = audit_log.hub_id),
  (select owner_id from api_keys where prefix = case when actor like 'key:%' then substr(actor, 5) end),
  (select owner_id from api_keys where prefix = case when object like 'key-%' then substr(object, 5) end))`

/** The acts of an action after a position. `end`: the last row, if further rows follow it. */
async function readActs(
  q: Queries,
  action: string,
  { at, id }: Position,
): Promise<{ acts: Act[]; end?: Position }> {
  const acts: Act[] = []
  let end: Position = { at, id }
  for (let page = 0; page < PAGES; page += 1) {
    const rows = await q
      .selectFrom('audit_log')
      .select(['id', 'at', 'action', 'hub_id', 'object', 'detail', 'actor'])
      .select(OWNER.as('owner_id'))
      .where('action', '=', action)
      .where(sql<SqlBool>`(at, id) > (${end.at}, ${end.id})`)
      .orderBy('at')
      .orderBy('id')
      .limit(PAGE_ROWS)
      .execute()
    acts.push(...rows.map(actOf))
    const last = rows.at(-1)
    if (!last || rows.length < PAGE_ROWS) return { acts }
    end = { at: last.at, id: last.id }
  }
  return { acts, end }
}

interface ActRow extends Omit<Act, 'identity' | 'owner'> {
  detail: string
  actor: string
  owner_id: number | null
}

function actOf({ at, action, hub_id, object, detail, actor, owner_id }: ActRow): Act {
  const { identity } = JSON.parse(detail) as { identity?: unknown }
  const owner = owner_id === null ? actor : `owner-${owner_id}`
  return { at, action, hub_id, object, owner, ...(typeof identity === 'string' && { identity }) }
}
