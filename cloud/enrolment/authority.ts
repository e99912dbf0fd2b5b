import { isIP } from 'node:net'
import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import { DAY_MS } from '../../protocol/model/times.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { type Key, loadX509, P256, privatePem, type PublicKey, readPrivatePem } from '../../protocol/x509.ts'
import { authorityRows } from '../gateway/hub-certificates.ts'
import { CLOCK_TOLERANCE_MS } from '../gateway/lost-certificates.ts'
import type { CloudContext } from '../platform/context.ts'
import { isUniqueViolation, type Tx } from '../platform/store/database.ts'

/** When a certificate begins and ends, in milliseconds since the Unix epoch. */
export interface Validity {
  from: number
  until: number
}

export interface RevokedCertificate {
  /** Hexadecimal in lower case. */
  serial: string
  revokedAt: number
}

/**
 * A certificate authority of the cloud. It signs the certificates of hubs, the list of revoked certificates, and a
 * server certificate for the embedded broker. Its key is sealed in the database, so all processes share it.
 */
export interface Authority {
  id: number
  /** Its own certificate, PEM. */
  certificate: string
  /** Its common name: the issuer of its certificates. */
  name: string
  createdAt: number
  /** The end of its certificates: its own end, or the end of the overlap with its successor. */
  until: number
  /** Signs a hub's public key for client authentication. Returns PEM. */
  signHub(key: PublicKey, hub: { hubId: number; serial: string } & Validity): Promise<string>
  /** Makes a key and a server certificate for host names and addresses. Returns PEM. */
  makeServer(hosts: readonly string[], validity: Validity): Promise<{ cert: string; key: string }>
  /** The list of revoked certificates (RFC 5280 §5), PEM. */
  listRevoked(revoked: readonly RevokedCertificate[], validity: Validity): Promise<string>
}

/** The authorities of the cloud, the newest first. During a rotation there is a former one, too. */
export type Authorities = readonly [Authority, ...Authority[]]

/** Later authorities have a random number behind this name: a client finds the issuer of a certificate by its name. */
const NAME = 'Larder hubs'
const LIFETIME_MS = 20 * 365 * DAY_MS

/** A serial number: 16 random bytes without a leading zero, hexadecimal. */
export function newSerial(random: Random): string {
  const serial = Buffer.from(random.bytes(16))
  serial[0] = (serial[0]! & 0x7f) | 0x40
  return serial.toString('hex')
}

/** The authorities that were read, by their certificates: their keys are opened once. */
const opened = new Map<string, OpenAuthority>()

/** Opens the authorities of the database. The first call creates one. */
export async function openAuthorities(context: CloudContext): Promise<Authorities> {
  const { db, sealer, runtime } = context
  for (let attempt = 1; ; attempt += 1) {
    const rows = await authorityRows(db.kysely)
    const [newest, ...former] = await Promise.all(
      rows.map(async (row) => {
        const key = () => sealer.open('authority key', row.sealed_key)
        const own =
          opened.get(row.certificate) ?? (await openAuthority(row.certificate, key(), runtime.random))
        opened.set(row.certificate, own)
        const until = Math.min(row.ends_at ?? Infinity, own.endsAt)
        return { ...own, id: row.id, createdAt: row.created_at, until }
      }),
    )
    if (newest) return [newest, ...former]
    try {
      await createAuthority(context, 1)
    } catch (error) {
      // Another process has created it first.
      if (attempt === 3 || !isUniqueViolation(error)) throw error
    }
  }
}

/** The certificates of the authorities, PEM. The newest one is the first. */
export const bundleOf = (authorities: Authorities): string =>
  authorities.map(({ certificate }) => certificate).join('')

/**
 * The authority that signs the certificates of hubs: the newest one, as soon as brokers had the time to trust it.
 * `delayMs`: this time.
 */
export const signerOf = (authorities: Authorities, now: number, delayMs: number): Authority =>
  authorities.find(({ createdAt }) => createdAt + delayMs <= now) ?? authorities.at(-1)!

/** Makes an authority. Throws if another process has made it first. `also` runs in its transaction. */
export async function createAuthority(
  { db, runtime, sealer }: CloudContext,
  id: number,
  also?: (tx: Tx) => Promise<void>,
): Promise<void> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } =
    await loadX509()
  const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
  const now = runtime.clock.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(runtime.random),
    name: `CN=${id === 1 ? NAME : `${NAME} ${randomHex(runtime.random, 8)}`}`,
    notBefore: new Date(now - CLOCK_TOLERANCE_MS),
    notAfter: new Date(now + LIFETIME_MS),
    signingAlgorithm: P256,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ],
  })
  const row = {
    id,
    certificate: `${certificate.toString('pem')}\n`,
    sealed_key: sealer.seal('authority key', await privatePem(keys.privateKey)),
    created_at: now,
    ends_at: null,
  }
  await db.transact(async (tx) => {
    await tx.q.insertInto('hub_authority').values(row).execute()
    await also?.(tx)
  })
}

type OpenAuthority = Omit<Authority, 'id' | 'createdAt' | 'until'> & { endsAt: number }

async function openAuthority(certificate: string, keyPem: string, random: Random): Promise<OpenAuthority> {
  const x509 = await loadX509()
  const own = new x509.X509Certificate(certificate)
  const name = own.subjectName.getField('CN')[0] ?? NAME
  const signingKey = await readPrivatePem(keyPem)
  const sign = async (
    leaf: {
      subject: string
      publicKey: PublicKey | Key
      serial: string
      usage: string
      hosts?: readonly string[]
    },
    { from, until }: Validity,
  ): Promise<string> => {
    const signed = await x509.X509CertificateGenerator.create({
      serialNumber: leaf.serial,
      subject: leaf.subject,
      issuer: own.subject,
      notBefore: new Date(from),
      notAfter: new Date(until),
      publicKey: leaf.publicKey,
      signingKey,
      signingAlgorithm: P256,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([leaf.usage]),
        ...(leaf.hosts === undefined
          ? []
          : [
              new x509.SubjectAlternativeNameExtension(
                leaf.hosts.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
              ),
            ]),
      ],
    })
    return `${signed.toString('pem')}\n`
  }
  return {
    certificate,
    name,
    endsAt: own.notAfter.getTime(),
    signHub: (publicKey, { hubId, serial, ...validity }) =>
      sign(
        { subject: `CN=${hubUser(hubId)}`, publicKey, serial, usage: x509.ExtendedKeyUsage.clientAuth },
        validity,
      ),
    async makeServer(hosts, validity) {
      const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
      const cert = await sign(
        {
          subject: 'CN=Larder broker',
          publicKey: keys.publicKey,
          serial: newSerial(random),
          usage: x509.ExtendedKeyUsage.serverAuth,
          hosts,
        },
        validity,
      )
      return { cert, key: await privatePem(keys.privateKey) }
    },
    async listRevoked(revoked, { from, until }) {
      const list = await x509.X509CrlGenerator.create({
        issuer: own.subject,
        thisUpdate: new Date(from),
        nextUpdate: new Date(until),
        entries: revoked.map(({ serial, revokedAt }) => ({
          serialNumber: serial,
          revocationDate: new Date(revokedAt),
        })),
        signingAlgorithm: P256,
        signingKey,
      })
      // OpenSSL knows lists by this name only.
      return `${x509.PemConverter.encode(list.rawData, 'X509 CRL')}\n`
    },
  }
}
