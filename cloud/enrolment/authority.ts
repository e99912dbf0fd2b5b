import { isIP } from 'node:net'
import type { Random } from '../../protocol/model/runtime.ts'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { type Key, loadX509, P256, privatePem, type PublicKey, readPrivatePem } from '../../protocol/x509.ts'
import { CLOCK_TOLERANCE_MS } from '../gateway/lost-certificates.ts'
import type { CloudContext } from '../platform/context.ts'
import { isUniqueViolation, type CloudDatabase } from '../platform/store/database.ts'

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
 * The cloud's own certificate authority. It signs the certificates of hubs, the list of revoked certificates, and a
 * server certificate for the embedded broker. Its key is sealed in the database, so all processes share it.
 */
export interface Authority {
  /** Its own certificate, PEM. */
  certificate: string
  /** Signs a hub's public key for client authentication. Returns PEM. */
  signHub(key: PublicKey, hub: { hubId: number; serial: string } & Validity): Promise<string>
  /** Makes a key and a server certificate for host names and addresses. Returns PEM. */
  makeServer(hosts: readonly string[], validity: Validity): Promise<{ cert: string; key: string }>
  /** The list of revoked certificates (RFC 5280 §5), PEM. */
  listRevoked(revoked: readonly RevokedCertificate[], validity: Validity): Promise<string>
}

const SUBJECT = 'CN=Larder hubs'
const LIFETIME_MS = 20 * 365 * 86_400_000

/** A serial number: 16 random bytes without a leading zero, hexadecimal. */
export function newSerial(random: Random): string {
  const serial = Buffer.from(random.bytes(16))
  serial[0] = (serial[0]! & 0x7f) | 0x40
  return serial.toString('hex')
}

/** By database. */
const opened = new WeakMap<CloudDatabase['kysely'], Promise<Authority>>()

/** Opens the authority of the database, which never changes. The first call creates it. */
export function openAuthority(context: CloudContext): Promise<Authority> {
  const { kysely } = context.db
  const known = opened.get(kysely) ?? readOrCreate(context)
  opened.set(kysely, known)
  // A failed attempt is repeated by the next caller.
  known.catch(() => opened.delete(kysely))
  return known
}

async function readOrCreate(context: CloudContext): Promise<Authority> {
  const { db, sealer } = context
  for (let attempt = 1; ; attempt += 1) {
    const [row] = await db.kysely.selectFrom('hub_authority').selectAll().execute()
    if (row)
      return authority(row.certificate, sealer.open('authority key', row.sealed_key), context.runtime.random)
    try {
      await create(context)
    } catch (error) {
      // Another process has created it first.
      if (attempt === 3 || !isUniqueViolation(error)) throw error
    }
  }
}

async function create({ db, runtime, sealer }: CloudContext): Promise<void> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } =
    await loadX509()
  const keys = await crypto.subtle.generateKey(P256, true, ['sign', 'verify'])
  const now = runtime.clock.now()
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(runtime.random),
    name: SUBJECT,
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
    id: 1,
    certificate: `${certificate.toString('pem')}\n`,
    sealed_key: sealer.seal('authority key', await privatePem(keys.privateKey)),
    created_at: now,
  }
  await db.transact((tx) => tx.q.insertInto('hub_authority').values(row).execute())
}

async function authority(certificate: string, keyPem: string, random: Random): Promise<Authority> {
  const x509 = await loadX509()
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
      issuer: SUBJECT,
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
        issuer: SUBJECT,
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
