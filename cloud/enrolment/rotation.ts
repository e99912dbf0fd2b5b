import { maySpeak } from '../gateway/draining.ts'
import { authorityRows, hasCertificateOf, hubsWithout } from '../gateway/hub-certificates.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import { timestamp } from '../platform/calendar/days.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { schedule } from '../platform/work/queue.ts'
import { done, type WorkKinds } from '../platform/work/runner.ts'
import { createAuthority, type Authorities, type Authority } from './authority.ts'

/**
 * The rotation of the cloud's own authority. The command line requests it as due work, because only the service can seal the new
 * key. Hubs compare their authorities with those of the cloud at each connection and each hour, and store
 * the new ones. Then they ask for a certificate of the new authority. The embedded broker shows a certificate of the former one
 * until every hub has that. At the end of the overlap the former authority is deleted.
 */

/**
 * Due work that makes a requested authority, and deletes the former one at the end of the overlap. The subject contains the id of
 * the authority that is replaced, and the overlap in milliseconds.
 */
const AUTHORITY_WORK = 'authority'

/** Requests a new authority. The overlap begins when the service has made it. Throws during a rotation. */
export async function rotateAuthority(tx: Tx, now: number, overlapMs: number): Promise<void> {
  const [only, ...others] = await authorityRows(tx.q)
  if (!only) throw new Error('there is no authority yet: the service makes it at the first enrolment')
  if (others.length > 0) throw new Error('a rotation is in progress; larder ca retire ends it')
  if (await isToBeReplaced(tx.q, only.id))
    throw new Error(
      'a rotation is requested already: a running service makes the new authority within seconds',
    )
  await schedule(tx, AUTHORITY_WORK, `${only.id} ${overlapMs}`, now)
}

/** Whether a new authority is requested that the service has not made yet. */
export async function isToBeReplaced(q: Queries, id: number): Promise<boolean> {
  const requested = q.selectFrom('due_work').select('subject').where('kind', '=', AUTHORITY_WORK)
  return (await requested.where('subject', 'like', `${id} %`).executeTakeFirst()) !== undefined
}

/**
 * Deletes former authorities: brokers accept none of their certificates any more. Certificates of hubs without a newer one are
 * revoked, so the embedded broker ends their sessions. Returns these hubs. `isDue`: only authorities whose overlap has ended.
 */
export async function retireFormer(
  tx: Tx,
  now: number,
  { isDue = false, force = true } = {},
): Promise<{ retired: number[]; lost: number[] }> {
  const rows = await tx
    .forUpdate(tx.q.selectFrom('hub_authority').selectAll().orderBy('id', 'desc'))
    .execute()
  const [newest, ...former] = rows
  const ended = former.filter(({ ends_at }) => !isDue || (ends_at ?? 0) <= now).map(({ id }) => id)
  if (!newest || ended.length === 0) return { retired: [], lost: [] }
  const lost = await hubsWithout(tx.q, newest.id, now)
  if (lost.length > 0 && !force)
    throw new Error(
      `these hubs have no certificate of the new authority and would need a new enrolment: ${lost.join(', ')}. --force retires it anyway`,
    )
  if (lost.length > 0)
    await tx.q
      .updateTable('hub_certificates')
      .set({ revoked_at: now })
      .where('authority', 'in', ended)
      .where((eb) => eb.not(hasCertificateOf('hub_certificates.hub_id', newest.id)))
      .where('revoked_at', 'is', null)
      .execute()
  await tx.q.deleteFrom('hub_authority').where('id', 'in', ended).execute()
  return { retired: ended, lost }
}

export const authorityWork = (context: CloudContext): WorkKinds => ({
  [AUTHORITY_WORK]: {
    async run({ subject }) {
      const { db, runtime } = context
      const now = runtime.clock.now()
      const [replaced, overlapMs] = subject.split(' ').map(Number) as [number, number]
      const record = (tx: Tx, action: string, detail: Record<string, unknown>) =>
        appendAudit(tx.q, runtime, {
          actor: 'cloud',
          object: 'ca',
          result: 'executed',
          hubId: null,
          action,
          detail,
        })
      const [newest] = await authorityRows(db.kysely)
      if (newest?.id === replaced)
        await createAuthority(context, replaced + 1, async (tx) => {
          const row = tx.q.updateTable('hub_authority').where('id', '=', replaced)
          await row.set({ ends_at: now + overlapMs }).execute()
          await record(tx, 'ca.create', { id: replaced + 1, overlap_until: timestamp(now + overlapMs) })
        })
      await db.transact(async (tx) => {
        const { retired, lost } = await retireFormer(tx, now, { isDue: true })
        if (retired.length > 0) await record(tx, 'ca.retire', { ids: retired, hubs: lost })
      })
      const ends = (await authorityRows(db.kysely)).flatMap(({ ends_at }) => ends_at ?? [])
      return ends.length > 0 ? { next: Math.min(...ends) } : done
    },
  },
})

/**
 * The authority of the embedded broker's certificate: a former one while a hub in service may not know the newest. A hub with a
 * certificate of the newest knows it. A hub with a password has a copy of the authorities, and a person replaces it.
 */
export async function serverAuthority(q: Queries, authorities: Authorities, now: number): Promise<Authority> {
  const [newest] = authorities
  const former = authorities.at(-1)!
  if (former === newest || former.until <= now) return newest
  const unaware = q
    .selectFrom('hubs')
    .select('hubs.id')
    .where((eb) => maySpeak(eb, now))
    .where((eb) => eb.not(hasCertificateOf('hubs.id', newest.id)))
    .limit(1)
  return (await unaware.executeTakeFirst()) ? former : newest
}
