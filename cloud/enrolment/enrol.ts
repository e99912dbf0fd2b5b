import { z } from 'zod'
import { randomHex } from '../../protocol/model/ids.ts'
import { DAY_MS } from '../../protocol/model/times.ts'
import type { Random, Runtime } from '../../protocol/model/runtime.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import type { CertificateAnswer, CertificateRequest } from '../../protocol/mqtt/session.ts'
import { loadX509, type Pkcs10CertificateRequest, type PublicKey } from '../../protocol/x509.ts'
import { isToErase, maySpeak } from '../gateway/draining.ts'
import { endMove, eraseOrder, LEAVING } from '../gateway/moves.ts'
import { latestRoot, readDesired } from '../gateway/desired-state.ts'
import { ApiError } from '../platform/api-error.ts'
import { schedule } from '../platform/work/queue.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import { timestamp } from '../platform/calendar/days.ts'
import { digestOf } from '../platform/credentials/secrets.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Handlers } from '../platform/http/handler.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { CLOCK_TOLERANCE_MS, toleranceOf } from '../gateway/lost-certificates.ts'
import { bundleOf, newSerial, openAuthorities, signerOf, type Authority } from './authority.ts'
import { authoritiesDigest, RENEWAL_DUE } from '../../protocol/mqtt/certificates.ts'
import { codeDigest } from './claim-codes.ts'
import {
  certificateOf,
  endSession,
  revokeCertificates,
  revokedCertificates,
} from '../gateway/hub-certificates.ts'

/** An enrolled hub needs these beside its certificate. */
export interface EnrolmentOptions {
  /** The broker's address for hubs. */
  mqttUrl: string
  /** PEM of the authorities that signed the broker's certificate, if it is not the cloud's own authority. */
  brokerCa: () => string | undefined
}

/** How long a list of revoked certificates may be used. */
const LIST_MS = 7 * 86_400_000

/** Enrols hubs, and publishes the certificates of the cloud's authority. */
export function enrolmentHandlers(
  context: CloudContext,
  { mqttUrl, brokerCa }: EnrolmentOptions,
): Handlers<'owner.hubs.enroll' | 'root.pki.ca' | 'root.pki.crl'> {
  const { db, runtime } = context
  return {
    async 'owner.hubs.enroll'({ body }) {
      const request = derOf(body.csr)
      const digest = codeDigest(body.claim_code)
      const hub = await claimedHub(db.kysely, digest, runtime.clock.now())
      const key = await requestedKey(request)
      const now = runtime.clock.now()
      const authorities = await openAuthorities(context)
      const by = signerOf(authorities, now, context.settings.hubAuthorityDelayMs)
      const { certificate, issued } = await sign(context, by, { hubId: hub.id, key, now })
      await db.transact(async (tx) => {
        await useCode(tx, digest, now)
        // The code stays valid.
        if (!(await lockAuthority(tx, by))) throw new ApiError('service_unavailable')
        const revoked = await revokeCertificates(tx, hub.id, now)
        if (revoked.length > 0) await endSession(tx, hub.id, now)
        await storeCertificate(tx, issued)
        await appendAudit(tx.q, runtime, {
          actor: hubUser(hub.id),
          action: 'hubs.enroll',
          hubId: hub.id,
          object: hubUser(hub.id),
          result: 'executed',
          detail: { serial: issued.serial },
        })
      })
      const { version, settings, hardware } = await readDesired(db.kysely, hub.id)
      const root = await latestRoot(db.kysely)
      return {
        hub_id: hub.id,
        name: hub.name,
        certificate,
        ca: bundleOf(authorities) + (brokerCa() ?? ''),
        mqtt_url: mqttUrl,
        expires_at: timestamp(issued.until),
        hardware,
        settings,
        desired_version: version,
        update_root: root ?? null,
      }
    },
    'root.pki.ca': async () => bundleOf(await openAuthorities(context)),
    async 'root.pki.crl'() {
      const now = runtime.clock.now()
      const validity = { from: now - CLOCK_TOLERANCE_MS, until: now + LIST_MS }
      const revoked = await revokedCertificates(db.kysely, now)
      const lists = (await openAuthorities(context)).map((by) =>
        by.listRevoked(
          revoked.filter(({ authority }) => authority === by.id),
          validity,
        ),
      )
      return (await Promise.all(lists)).join('')
    },
  }
}

/** One block of PEM with only base64 in it: a parser of foreign text must take linear time. */
const REQUEST =
  /^\s*-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END (?:NEW )?CERTIFICATE REQUEST-----\s*$/

/** The content of a certificate request in PEM. Throws 422 if it is none. */
function derOf(csr: string): Buffer {
  const content = REQUEST.exec(csr)?.[1]
  if (content === undefined) throw badRequest('is no certificate request (PKCS #10) in PEM')
  return Buffer.from(content, 'base64')
}

/** The key of a certificate request. Throws 422 if the request or its key cannot be used. */
async function requestedKey(der: Buffer): Promise<PublicKey> {
  const { Pkcs10CertificateRequest } = await loadX509()
  let request: Pkcs10CertificateRequest
  let algorithm: unknown
  try {
    request = new Pkcs10CertificateRequest(new Uint8Array(der))
    algorithm = request.publicKey.algorithm
  } catch {
    throw badRequest('is no certificate request (PKCS #10) in PEM')
  }
  const known = KeyAlgorithm.safeParse(algorithm)
  const isStrong = known.success && ('namedCurve' in known.data || known.data.modulusLength >= MIN_RSA_BITS)
  if (!isStrong) throw badRequest('must have a key of P-256, P-384, or RSA with at least 2048 bits')
  if (!(await request.verify().catch(() => false))) throw badRequest('is not signed by its own key')
  return request.publicKey
}

const MIN_RSA_BITS = 2048
const KeyAlgorithm = z.union([
  z.object({ namedCurve: z.enum(['P-256', 'P-384']) }),
  z.object({ name: z.string().startsWith('RSA'), modulusLength: z.number() }),
])

const badRequest = (rule: string): ApiError =>
  ApiError.invalid({ loc: ['body', 'csr'], msg: `Value error, ${rule}`, type: 'value_error' })

/** The hub of a valid claim code. Throws 403. */
async function claimedHub(q: Queries, digest: string, now: number) {
  const hub = await q
    .selectFrom('hubs')
    .select(['id', 'name'])
    .where('claim_code_digest', '=', digest)
    .where('claim_expires_at', '>', now)
    .where('retired_at', 'is', null)
    .executeTakeFirst()
  if (!hub) throw new ApiError('invalid_claim_code')
  return hub
}

/** Ends a code. Throws 403 if another board has used it in the meantime. */
async function useCode(tx: Tx, digest: string, now: number): Promise<void> {
  const { id } = await claimedHub(tx.q, digest, now)
  await lockRow(tx, id)
  const { numUpdatedRows } = await tx.q
    .updateTable('hubs')
    .set({ claim_code_digest: null, claim_expires_at: null, revoked_at: null, secrets_erased_at: null })
    .where('id', '=', id)
    .where('claim_code_digest', '=', digest)
    .executeTakeFirst()
  if (numUpdatedRows === 0n) throw new ApiError('invalid_claim_code')
}

interface Issued {
  hubId: number
  /** The id of its authority. */
  authority: number
  serial: string
  now: number
  until: number
}

/** Signs a certificate for a hub's key. It counts when it is stored. It ends with its authority. */
async function sign(
  context: CloudContext,
  by: Authority,
  { hubId, key, now }: { hubId: number; key: PublicKey; now: number },
): Promise<{ certificate: string; issued: Issued }> {
  const { hubCertificateMs } = context.settings
  const until = Math.min(now + hubCertificateMs, by.until)
  const issued = { hubId, serial: newSerial(context.runtime.random), authority: by.id, now, until }
  const from = now - toleranceOf(until - now)
  return { certificate: await by.signHub(key, { ...issued, from }), issued }
}

async function storeCertificate(tx: Tx, { hubId, serial, authority, now, until }: Issued): Promise<void> {
  await tx.q
    .insertInto('hub_certificates')
    .values({ serial, hub_id: hubId, authority, issued_at: now, expires_at: until, revoked_at: null })
    .execute()
}

/** Whether the authority still exists: it may have been retired since it was read. It then exists until the end of this transaction. */
const lockAuthority = async (tx: Tx, { id }: Authority): Promise<boolean> =>
  (await tx
    .forUpdate(tx.q.selectFrom('hub_authority').select('id').where('id', '=', id))
    .executeTakeFirst()) !== undefined

/** A hub gets at most this many certificates in the lifetime of one. */
const MAX_RENEWALS = 10

/**
 * Signs the next certificate of an enrolled hub that may communicate. The former one stays valid until its end: the answer
 * may be lost, and the hub asks again. Null if the hub has no valid certificate, or got its latest one a short time ago. A hub that lacks an authority
 * first receives the authorities: it must not get a certificate before it trusts the authority of its broker. An older hub does
 * not report what it trusts, and stays with its authority.
 */
export async function renewCertificate(
  context: CloudContext,
  { brokerCa }: Pick<EnrolmentOptions, 'brokerCa'>,
  hubId: number,
  { csr, ca }: CertificateRequest,
): Promise<CertificateAnswer | null> {
  const { db, runtime, settings, log } = context
  const now = runtime.clock.now()
  // A broker of another make may accept a revoked certificate, and a hub that moves trusts this answer (SPEC §2).
  const hub = db.kysely.selectFrom('hubs').select('id').where('id', '=', hubId)
  if (!(await hub.where((eb) => maySpeak(eb, now)).executeTakeFirst())) return null
  const authorities = await openAuthorities(context)
  const trusted = bundleOf(authorities) + (brokerCa() ?? '')
  if (ca !== undefined && ca !== authoritiesDigest(trusted)) return { ca: trusted }
  if (csr === undefined) return null
  const before = await certificateOf(db.kysely, hubId, now)
  if (!before) return null
  const own = ca === undefined ? authorities.find(({ id }) => id === before.authority) : undefined
  const by = own ?? signerOf(authorities, now, settings.hubAuthorityDelayMs)
  // During a rotation an answer must not be lost for long.
  const pauseMs = settings.hubCertificateMs / MAX_RENEWALS
  const isRecent = now - before.issued_at < (authorities.length > 1 ? Math.min(pauseMs, DAY_MS) : pauseMs)
  if (isRecent && before.authority === by.id) return null
  // A hub that asks because of the new authority waits until that signs.
  const [newest] = authorities
  const waitMs = newest.createdAt + settings.hubAuthorityDelayMs - now
  const dueAt = before.issued_at + (before.expires_at - before.issued_at) * RENEWAL_DUE
  if (ca !== undefined && by !== newest && waitMs < pauseMs && now < dueAt) return null
  const key = await Promise.resolve(csr)
    .then(derOf)
    .then(requestedKey)
    .catch((error: unknown) => {
      log.warn({ hub: hubId, error: String(error) }, 'a hub asked for a certificate with a bad request')
      return undefined
    })
  if (!key) return null
  const { certificate, issued } = await sign(context, by, { hubId, key, now })
  const isValid = await db.transact(async (tx) => {
    await lockRow(tx, hubId)
    // In the meantime the hub may have got another certificate, or this board may have been revoked.
    const latest = await certificateOf(tx.q, hubId, now)
    if (latest?.serial !== before.serial || !(await lockAuthority(tx, by))) return false
    await storeCertificate(tx, issued)
    return true
  })
  return isValid ? { certificate } : null
}

const lockRow = (tx: Tx, hubId: number): Promise<{ id: number } | undefined> =>
  tx.forUpdate(tx.q.selectFrom('hubs').select('id').where('id', '=', hubId)).executeTakeFirst()

/**
 * Shuts a hub out: its certificates, its password and its claim code end, and the cloud ignores it until it is enrolled again or
 * has a new password. Returns the serial numbers. Throws if there is no such hub, or if it has no valid certificate. A hub that has
 * not left for another cell needs none: its board may still be enrolled there.
 */
export async function revokeHub(tx: Tx, { clock, random }: Runtime, hubId: number): Promise<string[]> {
  if (!(await lockRow(tx, hubId))) throw new Error(`no such hub: ${hubId}`)
  const now = clock.now()
  const isLeaving = (await eraseOrder(tx.q, hubId))?.next !== undefined
  const revoked = await revokeCertificates(tx, hubId, now)
  if (revoked.length === 0 && !isLeaving) throw new Error(`hub ${hubId} has no valid certificate`)
  await shutOut(tx, random, hubId, now)
  await endSession(tx, hubId, now)
  return revoked
}

/**
 * The cloud ignores a hub. Its password and its claim code end: the board may hold the password, or a note with the code. The hub
 * is offline at once, and not only when its last heartbeat is old: it accepts no more orders.
 */
export async function shutOut(tx: Tx, random: Random, hubId: number, at: number): Promise<void> {
  const ended = {
    revoked_at: at,
    mqtt_password_digest: digestOf(randomHex(random, 16)),
    former_passwords: null,
    claim_code_digest: null,
    claim_expires_at: null,
  }
  await tx.q.updateTable('hubs').set(ended).where('id', '=', hubId).execute()
  // The board must not get the claim code of another cell.
  await endMove(tx.q, hubId, 'the board was revoked')
  // Ends the alarm of a move that failed.
  await schedule(tx, LEAVING, hubId, at)
  const left = { is_connected: 0, has_left: 1 } as const
  await tx.q.updateTable('hub_sessions').set(left).where('hub_id', '=', hubId).execute()
  // Publishes that the hub is offline.
  await schedule(tx, 'hub.silent', hubId, at)
}

/** A board has erased its secrets. A message of a hub in service changes nothing. `onErased` runs in its transaction. */
export const noteErased = (
  { db, runtime }: CloudContext,
  hubId: number,
  onErased: (tx: Tx) => Promise<void> = () => Promise.resolve(),
): Promise<void> =>
  db.transact(async (tx) => {
    const { numUpdatedRows } = await tx.q
      .updateTable('hubs')
      .set({ secrets_erased_at: runtime.clock.now(), draining_until: null })
      .where('id', '=', hubId)
      .where(isToErase)
      .executeTakeFirst()
    if (numUpdatedRows === 0n) return
    await onErased(tx)
    await appendAudit(tx.q, runtime, {
      actor: hubUser(hubId),
      action: 'hubs.secrets_erased',
      hubId,
      object: hubUser(hubId),
      result: 'executed',
    })
  })
