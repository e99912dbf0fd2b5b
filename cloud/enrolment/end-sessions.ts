import { sleep } from '../../protocol/model/runtime.ts'
import type { Erase } from '../../protocol/mqtt/session.ts'
import { loadX509, P256, privatePem } from '../../protocol/x509.ts'
import { maySpeak } from '../gateway/draining.ts'
import { CLOCK_TOLERANCE_MS } from '../gateway/lost-certificates.ts'
import { eraseOrder } from '../gateway/moves.ts'
import { tryLogin } from '../gateway/try-login.ts'
import type { CloudContext } from '../platform/context.ts'
import { lockHubs } from '../platform/credentials/hub-access.ts'
import type { Queries } from '../platform/store/database.ts'
import { done, type WorkKinds } from '../platform/work/runner.ts'
import { newSerial, openAuthorities, type Authority } from './authority.ts'
import type { EnrolmentOptions } from './enrol.ts'
import { revokeCertificates, revokedCertificates, SESSION_WORK } from '../gateway/hub-certificates.ts'

/** Time for a board to erase its secrets before its session ends. */
const ERASE_MS = 1000
/** A retired hub delivers its last reports first. */
const DRAIN_CHECK_MS = 5000
/** The cloud's own certificates of a hub are valid for this time. */
const LIFETIME_MS = 60_000
/** No hub has this number. */
const NO_HUB = 0

export interface SessionEnds extends EnrolmentOptions {
  /** The embedded broker ends sessions itself. */
  isEmbedded: boolean
  /** Orders a board to erase its secrets. */
  erase: (hubId: number, order: Erase) => void
}

/**
 * Ends the session of a board that is shut out, at an external broker (SPEC §2). A broker checks certificates only at the sign-in,
 * and one client id has one session. So the cloud signs in once as that hub with a certificate of its own authority, and leaves.
 *
 * The board may return if the broker's list of revoked certificates is old. Therefore the cloud also signs in with a certificate
 * that has the revoked serial number. The work fails until the broker refuses it, and each attempt ends the session again. If the
 * hub has a new board, both certificates name no hub, because they must not end the session of the new board.
 */
export function sessionWork(context: CloudContext, ends: SessionEnds): WorkKinds {
  const { db, runtime } = context
  const { clock } = runtime
  return {
    [SESSION_WORK]: {
      backoff: { firstMs: 2000, maxMs: 60_000 },
      async run({ subject }) {
        if (ends.isEmbedded || !ends.mqttUrl.startsWith('mqtts:')) return done
        const hubId = Number(subject)
        const now = clock.now()
        const hub = await hubToEnd(db.kysely, hubId, now)
        if (!hub) return done
        let { isServed } = hub
        if (isServed && hub.isRetired) return { next: now + DRAIN_CHECK_MS }
        if (!isServed) {
          const order = await eraseOrder(db.kysely, hubId)
          if (order) {
            ends.erase(hubId, order)
            await sleep(clock, ERASE_MS)
          }
          isServed = await db.transact(async (tx) => {
            await lockHubs(tx, [hubId])
            // The certificate of a board that was enrolled in the meantime stays valid.
            const isReplaced = (await hubToEnd(tx.q, hubId, now))?.isServed === true
            if (!isReplaced) await revokeCertificates(tx, hubId, now)
            return isReplaced
          })
        }
        const revoked = await revokedCertificates(db.kysely, now, hubId)
        if (revoked.length === 0) return done
        const authorities = await openAuthorities(context)
        const as = isServed ? NO_HUB : hubId
        // The broker has a list of each authority, and one of them may be old. It accepts no certificate of an authority that is
        // retired, so no list need name those.
        for (const by of authorities) {
          const last = revoked.findLast(({ authority }) => authority === by.id)
          const former = last ? await signInAs(context, ends, { by, as, serial: last.serial }) : 'refused'
          if (former === 'unreachable') throw new Error(`the hubs' broker ${ends.mqttUrl} cannot be reached`)
          if (former === 'accepted') throw new Error(STALE)
        }
        const by = authorities.find(({ id }) => id === revoked.at(-1)!.authority) ?? authorities[0]
        // This sign-in ends the board's session. If the hub has a new board, it only proves that the broker judges certificates,
        // and does not end every connection.
        const serial = newSerial(runtime.random)
        if ((await signInAs(context, ends, { by, as, serial })) !== 'accepted')
          throw new Error(isServed ? UNPROVEN : REFUSED)
        return done
      },
    },
  }
}

async function hubToEnd(q: Queries, hubId: number, now: number) {
  const hub = await q
    .selectFrom('hubs')
    .select((eb) => ['retired_at', maySpeak(eb, now).as('maySpeak')])
    .where('id', '=', hubId)
    .executeTakeFirst()
  return hub && { isServed: Boolean(hub.maySpeak), isRetired: hub.retired_at !== null }
}

const STALE =
  'the broker accepts a revoked certificate: replace its list of revoked certificates by GET /pki/crl.pem and reload the broker'
const REFUSED =
  "the broker refuses the cloud's own certificate of this hub, so an open session may last: remove its password, or restart the broker"
const UNPROVEN =
  'the broker does not prove that it refuses the revoked certificate of a replaced board: replace its list of revoked certificates by GET /pki/crl.pem and reload the broker'

/** Signs in at the hubs' broker with a new key and a short certificate, and leaves. */
async function signInAs(
  context: CloudContext,
  { mqttUrl: url, brokerCa }: EnrolmentOptions,
  { by, as: hubId, serial }: { by: Authority; as: number; serial: string },
) {
  const { clock } = context.runtime
  const { PublicKey } = await loadX509()
  const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
  const now = clock.now()
  const validity = { from: now - CLOCK_TOLERANCE_MS, until: now + LIFETIME_MS }
  const publicKey = await PublicKey.create(keys.publicKey)
  const cert = await by.signHub(publicKey, { hubId, serial, ...validity })
  const client = { cert, key: await privatePem(keys.privateKey) }
  return tryLogin({ url, ca: brokerCa(), user: `hub-${hubId}`, client }, clock)
}
