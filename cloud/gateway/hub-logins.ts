import { formerPasswords } from '../platform/credentials/former-passwords.ts'
import { digestOf, isSameDigest } from '../platform/credentials/secrets.ts'
import type { CloudDatabase, Queries } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'
import { maySpeak } from './draining.ts'
import { adoptCertificate, type Adoption } from './lost-certificates.ts'

/** The passwords in a hub's row. */
interface Passwords {
  mqtt_password_digest: string
  former_passwords: string | null
}

export const NO_SUCH_HUB = 'no such hub in this database'
/** The reason of a refused login, for the log. */
export type LoginRefusal =
  | typeof NO_SUCH_HUB
  | 'wrong password'
  | 'the client id is not the user'
  | 'the user is not the one of the certificate'
  | 'the certificate is revoked or unknown'
  | 'the password was renewed, or the certificate revoked'

/**
 * The login of a connected hub. It contains the digest of its password or the serial number of its certificate, so that a
 * renewal or a revocation ends it.
 */
export type HubLogin = { hubId: number } & ({ digest: string } | { serial: string })

/** A client certificate that TLS has verified. */
export interface ClientCertificate {
  /** Its common name. */
  user: string
  /** Hexadecimal in lower case. */
  serial: string
  /** The common name of the authority that signed it. */
  issuer: string
  /** Its validity, in milliseconds since the Unix epoch. */
  from: number
  until: number
}

/** A retired hub has a login while it drains. */
const withLogin = (q: Queries, now: number) =>
  q
    .selectFrom('hubs')
    .select(['id', 'mqtt_password_digest', 'former_passwords'])
    .where((eb) => maySpeak(eb, now))

/** On SQLite this statement waits for no transaction. */
const passwordsOf = statement((q, hub: { hubId: number; now: number }) =>
  withLogin(q, hub.now).where('id', '=', hub.hubId),
)

/**
 * Certificates of hubs that may communicate, which are not revoked and are valid, or have a valid successor. A hub that has renewed its
 * certificate keeps its session after the end of the former one: a command that is being executed would get no answer otherwise.
 * TLS refuses an expired certificate at the sign-in.
 */
const withCertificate = (q: Queries, now: number) =>
  q
    .selectFrom('hub_certificates')
    .innerJoin('hubs', 'hubs.id', 'hub_certificates.hub_id')
    .select(['hub_certificates.hub_id', 'hub_certificates.serial'])
    .where('hub_certificates.revoked_at', 'is', null)
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('hub_certificates as latest')
          .select('latest.serial')
          .whereRef('latest.hub_id', '=', 'hub_certificates.hub_id')
          .whereRef('latest.issued_at', '>=', 'hub_certificates.issued_at')
          .where('latest.revoked_at', 'is', null)
          .where('latest.expires_at', '>', now),
      ),
    )
    .where((eb) => maySpeak(eb, now))

const validCertificates = statement((q, login: { hubId: number; serial: string; now: number }) =>
  withCertificate(q, login.now)
    .where('hub_certificates.hub_id', '=', login.hubId)
    .where('hub_certificates.serial', '=', login.serial),
)

/** Whether a password is the current one, or a former one within its overlap. */
const isValid = (
  { mqtt_password_digest, former_passwords }: Passwords,
  digest: string,
  now: number,
): boolean =>
  isSameDigest(digest, mqtt_password_digest) ||
  formerPasswords(former_passwords, now).some((former) => isSameDigest(digest, former.digest))

/** Checks user name, password and client id of a hub. */
export async function signIn(
  q: Queries,
  now: number,
  { clientId, user, password }: { clientId: string; user: string | undefined; password: Buffer | undefined },
): Promise<HubLogin | LoginRefusal> {
  const hubId = hubOfUser(user ?? '')
  const [hub] = hubId === undefined ? [] : await passwordsOf(q, { hubId, now })
  const digest = digestOf(password?.toString() ?? '')
  // Unknown users are compared too, so that the time taken does not show which users exist.
  const matches = isValid(hub ?? { mqtt_password_digest: digestOf(''), former_passwords: null }, digest, now)
  if (hubId === undefined || hub === undefined) return NO_SUCH_HUB
  if (!matches) return 'wrong password'
  // Another client id could end the connection of another hub.
  return clientId === user ? { hubId, digest } : 'the client id is not the user'
}

/** Checks user name, client id and certificate of a hub. A client with a certificate needs no user name. */
export async function signInByCertificate(
  db: CloudDatabase,
  adoption: Adoption,
  {
    clientId,
    user,
    certificate,
  }: { clientId: string; user: string | undefined; certificate: ClientCertificate },
): Promise<HubLogin | LoginRefusal> {
  const hubId = hubOfUser(certificate.user)
  if (hubId === undefined) return NO_SUCH_HUB
  if (user !== undefined && user !== certificate.user) return 'the user is not the one of the certificate'
  if (clientId !== certificate.user) return 'the client id is not the user'
  const login = { hubId, serial: certificate.serial }
  const isKnown = await stillHolds(db.kysely, adoption.clock.now(), login)
  if (isKnown || (await adoptCertificate(db, adoption, { ...certificate, hubId }))) return login
  return 'the certificate is revoked or unknown'
}

/** Whether a login is still valid: its password was not renewed, or its certificate not revoked. */
export async function stillHolds(q: Queries, now: number, login: HubLogin): Promise<boolean> {
  if ('serial' in login) return (await validCertificates(q, { ...login, now })).length > 0
  const [hub] = await passwordsOf(q, { hubId: login.hubId, now })
  return hub !== undefined && isValid(hub, login.digest, now)
}

/** The logins that are no longer valid, found with one query for each kind of login. */
export async function endedLogins<T extends HubLogin>(
  q: Queries,
  now: number,
  logins: readonly T[],
): Promise<T[]> {
  const hasPasswords = logins.some((login) => 'digest' in login)
  const hasCertificates = logins.some((login) => 'serial' in login)
  const rows = hasPasswords ? await withLogin(q, now).execute() : []
  const byHub = new Map(rows.map((row) => [row.id, row]))
  const certificates = hasCertificates ? await withCertificate(q, now).execute() : []
  const serials = new Set(certificates.map(({ hub_id, serial }) => `${hub_id} ${serial}`))
  return logins.filter((login) => {
    if ('serial' in login) return !serials.has(`${login.hubId} ${login.serial}`)
    const hub = byHub.get(login.hubId)
    return hub === undefined || !isValid(hub, login.digest, now)
  })
}

/** The hub of a user name. */
function hubOfUser(user: string): number | undefined {
  const match = /^hub-([1-9]\d{0,9})$/.exec(user)
  return match ? Number(match[1]) : undefined
}
