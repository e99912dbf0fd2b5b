import { X509Certificate } from 'node:crypto'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import type { CloudDatabase, Tx } from '../platform/store/database.ts'
import { maySpeak } from './draining.ts'

/** The parts that an adoption uses. `onAdopted` runs in its transaction, and informs a person. */
export interface Adoption {
  clock: Clock
  log: Log
  onAdopted?: ((tx: Tx, certificate: VerifiedCertificate) => Promise<void>) | undefined
}

/** A hub's certificate as TLS has verified it. Times are milliseconds since the Unix epoch. */
export interface VerifiedCertificate {
  hubId: number
  serial: string
  /** The common name of the authority that signed it. */
  issuer: string
  /** When its validity begins. */
  from: number
  until: number
}

/** A certificate begins this long before it is issued, because clocks differ. */
export const CLOCK_TOLERANCE_MS = 86_400_000
/** A hub renews after two thirds of the whole time, so a short lifetime has a short tolerance. */
export const toleranceOf = (lifetimeMs: number): number => Math.min(CLOCK_TOLERANCE_MS, lifetimeMs / 10)

/** The end of the second in which a certificate was issued: its times are whole seconds. */
const issuedBy = ({ from, until }: VerifiedCertificate): number =>
  Math.ceil(from + Math.min(CLOCK_TOLERANCE_MS, (until - from) / 11)) + 999

/**
 * Stores a certificate that the database has lost by a restore or a failover: the cloud stores each certificate before it sends
 * it. Returns whether the certificate is valid. It must be newer than the hub, because a restored database gives the number of a
 * lost hub to another one. It must be newer than all known certificates of the hub, and it revokes them: its board has replaced
 * the boards and certificates before it. The claim code of the hub ends, too. That board may be stolen, so a warning names the remedy.
 */
export async function adoptCertificate(
  db: CloudDatabase,
  { clock, log, onAdopted }: Adoption,
  certificate: VerifiedCertificate,
): Promise<boolean> {
  const { hubId, serial, issuer, until } = certificate
  const now = clock.now()
  const issuedAt = issuedBy(certificate)
  const known = db.kysely.selectFrom('hub_certificates').select('serial').where('serial', '=', serial)
  // A revoked board may try again and again: this check needs no transaction.
  if (await known.executeTakeFirst()) return false
  return db.transact(async (tx) => {
    const hub = tx.q
      .selectFrom('hubs')
      .select('id')
      .where('id', '=', hubId)
      .where('created_at', '<=', issuedAt)
      .where((eb) => maySpeak(eb, now))
    if (!(await tx.forUpdate(hub).executeTakeFirst())) return false
    const ofHub = tx.q.selectFrom('hub_certificates').select('serial').where('hub_id', '=', hubId)
    if (await ofHub.where('issued_at', '>=', issuedAt).executeTakeFirst()) return false
    const authorities = await tx.q.selectFrom('hub_authority').select(['id', 'certificate']).execute()
    const by = authorities.find((one) => new X509Certificate(one.certificate).subject === `CN=${issuer}`)
    if (!by) return false
    // Others may have the key of a former authority. A hub that has a certificate of a newer one needs no more of the former.
    const newer = tx.q.selectFrom('hub_certificates').select('serial').where('hub_id', '=', hubId)
    if (await newer.where('authority', '>', by.id).executeTakeFirst()) return false
    // The board has used a code of the backup. A second board must not use it.
    await tx.q
      .updateTable('hubs')
      .set({ claim_code_digest: null, claim_expires_at: null })
      .where('id', '=', hubId)
      .execute()
    await tx.q
      .updateTable('hub_certificates')
      .set({ revoked_at: now })
      .where('hub_id', '=', hubId)
      .where('revoked_at', 'is', null)
      .execute()
    const times = { issued_at: issuedAt, expires_at: until, revoked_at: null }
    const row = { serial, hub_id: hubId, authority: by.id, ...times }
    await tx.q.insertInto('hub_certificates').values(row).execute()
    const actor = hubUser(hubId)
    const act = { actor, action: 'hubs.adopt_certificate', hubId, object: actor, result: 'executed' }
    await appendAudit(tx.q, { clock }, { ...act, detail: { serial } })
    await onAdopted?.(tx, certificate)
    const remedy = `if this board was stolen or replaced: larder hubs revoke ${hubId}`
    tx.afterCommit(() =>
      log.warn({ hubId, serial, remedy }, 'the certificate of a board was lost, and is stored again'),
    )
    return true
  })
}
