import { join } from 'node:path'
import { z } from 'zod'
import { appendAudit, type AuditRecord } from '../audit/audit.ts'
import { timestamp } from '../calendar/timestamps.ts'
import type { CloudContext } from '../context.ts'
import type { Queries } from '../store/database.ts'
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
})
type Act = z.infer<typeof Act>

/** Executes an act again. Null: only a person can repeat it. */
const repeats: Readonly<
  Record<string, ((q: Queries, context: CloudContext, act: Act) => Promise<unknown>) | null>
> = {
  'keys.revoke': (q, { runtime }, { object }) => revokeApiKey(q, runtime, object.slice('key-'.length)),
  async 'roles.revoke'(q, _context, { object, identity, at }) {
    const id = Number(object.slice('role-'.length))
    // A restored database gives the number of a lost role to another one.
    const known = (await listRoles(q, identity)).some((role) => role.id === id && role.createdAt <= at)
    if (known) await revokeRole(q, id)
  },
  'sessions.revoke': (q, _context, { object, at }) =>
    q
      .deleteFrom('sessions')
      .where('identity', '=', object.slice('identity:'.length))
      .where('created_at', '<=', at)
      .execute(),
  'keys.rotate': null,
  'webhooks.rotate_secret': null,
  'contacts.remove': null,
  'people.remove': null,
  'hubs.renew_password': null,
  'hubs.move': null,
  'hubs.retire': null,
  'users.erase': null,
}

/** The oldest backup of the schedule has 12 months. */
const KEPT_MS = 400 * 86_400_000

/**
 * Keeps these acts in a file of this machine. A database may lack the latest acts, because it was restored or a replica
 * has taken over. The service repeats such an act if it can. The audit log then has the act again, with the actor `cloud` and
 * the result `executed`, or `lost` if a person must repeat it.
 */
export async function keepActs(context: CloudContext, folder: string): Promise<void> {
  const { db, runtime, log } = context
  const file = storedList(join(folder, 'ended-rights.json'), Act)
  const since = runtime.clock.now() - KEPT_MS
  const stored = file.read().filter(({ at }) => at >= since)
  const known = await readActs(db.kysely, since)
  const newest = newestOf(known)
  const lost = stored.filter((act) => (newest.get(nameOf(act))?.at ?? 0) < act.at)
  if (lost.length > 0) {
    await db.transact(async (tx) => {
      for (const act of lost) {
        const repeat = repeats[act.action] ?? null
        await repeat?.(tx.q, context, act)
        await appendAudit(tx.q, runtime, recordOf(act, repeat ? 'executed' : 'lost'))
      }
    })
    log.warn({ acts: lost.map(nameOf) }, 'the database had lost acts: larder audit list --actor cloud')
  }
  file.write([...newestOf([...stored, ...known]).values()])
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

/** Acts by name. The last act replaces earlier acts with its name. */
function newestOf(acts: readonly Act[]): Map<string, Act> {
  const sorted = acts.toSorted((one, other) => one.at - other.at || (nameOf(one) < nameOf(other) ? -1 : 1))
  const newest = new Map<string, Act>()
  for (const act of sorted) {
    newest.delete(nameOf(act))
    newest.set(nameOf(act), act)
  }
  return newest
}

async function readActs(q: Queries, since: number): Promise<Act[]> {
  const rows = await q
    .selectFrom('audit_log')
    .select(['at', 'action', 'hub_id', 'object', 'detail'])
    .where('action', 'in', Object.keys(repeats))
    .where('at', '>=', since)
    .execute()
  return rows.map(({ detail, ...act }) => {
    const { identity } = JSON.parse(detail) as { identity?: unknown }
    return { ...act, ...(typeof identity === 'string' && { identity }) }
  })
}
