import { X509Certificate } from 'node:crypto'
import { sql } from 'kysely'
import { DAY_MS } from '../../protocol/model/times.ts'
import { endOf } from '../../protocol/mqtt/certificates.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { schedule } from '../platform/work/queue.ts'
import { maySpeak } from './draining.ts'
import { CLOCK_TOLERANCE_MS } from './lost-certificates.ts'

/**
 * The latest valid certificate of a hub: of the newest authority, the last that ends. A certificate of a clock that was ahead
 * is not valid before its beginning: brokers refuse it.
 */
export const certificateOf = (q: Queries, hubId: number, now: number) =>
  q
    .selectFrom('hub_certificates')
    .select(['serial', 'authority', 'issued_at', 'expires_at'])
    .where('hub_id', '=', hubId)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .where('issued_at', '<=', now + CLOCK_TOLERANCE_MS)
    .where((eb) => eb(sql<number>`issued_at - (expires_at - issued_at) / 10`, '<=', now))
    .orderBy('authority', 'desc')
    .orderBy('expires_at', 'desc')
    .limit(1)
    .executeTakeFirst()

/**
 * Revokes the certificates of a hub. Returns the serial numbers of those that were valid. Expired ones are revoked, too, because
 * the session of an expired certificate stays open while the hub has a later one.
 */
export async function revokeCertificates(tx: Tx, hubId: number, now: number): Promise<string[]> {
  const rows = await tx.q
    .updateTable('hub_certificates')
    .set({ revoked_at: now })
    .where('hub_id', '=', hubId)
    .where('revoked_at', 'is', null)
    .returning(['serial', 'expires_at'])
    .execute()
  return rows.flatMap(({ serial, expires_at }) => (expires_at > now ? [serial] : []))
}

/** Revoked certificates of all hubs or of one, the latest last. An expired certificate needs no revocation any more. */
export async function revokedCertificates(q: Queries, now: number, hubId?: number) {
  const rows = await q
    .selectFrom('hub_certificates')
    .select(['serial', 'authority', 'revoked_at'])
    .where('revoked_at', 'is not', null)
    .where('expires_at', '>', now)
    .$if(hubId !== undefined, (query) => query.where('hub_id', '=', hubId!))
    .orderBy('revoked_at')
    .execute()
  return rows.map(({ revoked_at, ...row }) => ({ ...row, revokedAt: revoked_at! }))
}

/** Whether the hub in this column has a certificate of the authority with this id. */
export const hasCertificateOf = (hub: 'hubs.id' | 'hub_certificates.hub_id', authority: number) =>
  sql<boolean>`exists (
    select 1 from hub_certificates as own
    where own.hub_id = ${sql.ref(hub)} and own.authority = ${authority} and own.revoked_at is null
  )`

/** Hubs that have a valid certificate, and none of the authority with this id. */
export async function hubsWithout(q: Queries, authority: number, now: number): Promise<number[]> {
  const rows = await q
    .selectFrom('hub_certificates')
    .innerJoin('hubs', 'hubs.id', 'hub_certificates.hub_id')
    .select('hub_id')
    .distinct()
    .where('hub_certificates.revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .where((eb) => maySpeak(eb, now))
    .where((eb) => eb.not(hasCertificateOf('hub_certificates.hub_id', authority)))
    .orderBy('hub_id')
    .execute()
  return rows.map(({ hub_id }) => hub_id)
}

/** Due work that ends the sessions of boards that are shut out (`end-sessions.ts`). */
export const SESSION_WORK = 'hub.session'

/** The open session of a board with a revoked certificate must end at an external broker, too. */
export const endSession = (tx: Tx, hubId: number, now: number): Promise<void> =>
  schedule(tx, SESSION_WORK, hubId, now)

/** The rows of the authorities, the newest first. */
export const authorityRows = (q: Queries) =>
  q.selectFrom('hub_authority').selectAll().orderBy('id', 'desc').execute()

/** The name of the authority's certificate in alarms. */
export const AUTHORITY = 'ca'

/** An authority must be rotated this long before its end: an overlap of 90 days, and time for a person to notice. */
const ROTATE_BEFORE_MS = 180 * DAY_MS

/** The name of the overlap of a rotation in alarms. */
export const OVERLAP = 'ca overlap'

/** The end of the overlap of a rotation, if hubs would then be lost. */
export async function endOfOverlap(q: Queries, now: number): Promise<number | undefined> {
  const [newest, former] = await authorityRows(q)
  if (!newest || !former) return undefined
  return (await hubsWithout(q, newest.id, now)).length > 0 ? (former.ends_at ?? undefined) : undefined
}

/** The end of the newest authority's certificate, and when to warn of it; undefined if there is none. */
export async function endOfAuthority(q: Queries): Promise<{ endsAt: number; warnMs: number } | undefined> {
  const [newest] = await authorityRows(q)
  return newest && { endsAt: endOf(new X509Certificate(newest.certificate)), warnMs: ROTATE_BEFORE_MS }
}
