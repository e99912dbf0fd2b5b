import { createHash, X509Certificate } from 'node:crypto'

/** The time for checking certificates on a board with a possibly wrong clock. Milliseconds since the Unix epoch. */
export interface CertificateTime {
  /** The clock of this machine. Messages name it; no check uses it. */
  clock: number
  /** The latest of clock, journal and build time. A certificate that begins later is not yet valid. */
  latest: number
  /** Like `latest`, but only from times that a cloud has confirmed. A certificate with an earlier end has expired. */
  certain: number
}

/** Why a certificate is not accepted, as the rest of a sentence after "the broker's certificate". */
export type CertificateProblem = string

/**
 * The time for checking certificates on a machine. `known`: an estimate of the present from a store, and its certain
 * part. `builtAt`: no program runs before it was built.
 */
export function certificateTime(
  clock: number,
  builtAt: number,
  known: { estimate?: number | undefined; certain?: number | undefined } = {},
): CertificateTime {
  const certain = Math.max(clock, builtAt, known.certain ?? 0)
  return { clock, certain, latest: Math.max(certain, known.estimate ?? 0) }
}

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
/** A hub renews its certificate after this part of its lifetime. */
export const RENEWAL_DUE = 2 / 3
export const endOf = ({ validTo }: Pick<X509Certificate, 'validTo'>): number => Date.parse(validTo)

/** The first certificate of the chain that has expired or is not yet valid, in words. */
export function problemOfDates(
  chain: readonly X509Certificate[],
  { clock, latest, certain }: CertificateTime,
): CertificateProblem | undefined {
  for (const certificate of chain) {
    const [from, to] = [Date.parse(certificate.validFrom), endOf(certificate)]
    // A date that cannot be parsed proves nothing.
    if (!(to >= certain)) return `has expired on ${day(to)} (${nameOf(certificate)})`
    if (!(from <= latest))
      return `is not yet valid: it begins on ${day(from)}, and this machine believes that it is ${day(latest)} (its clock shows ${day(clock)}): set the clock, or let a time service set it`
  }
  return undefined
}

/**
 * Why a broker may have refused a certificate that ends at `endsAt`, as the rest of a sentence. Brokers do not report the reason. The
 * clock of a board may be wrong in both directions. `proven`: no earlier time is possible.
 */
export function refusalOf(
  endsAt: number,
  user: string,
  { clock, proven }: { clock: number; proven: number },
): string {
  if (endsAt <= proven) return `it expired on ${day(endsAt)}`
  const shown = `the clock of this board shows ${day(clock)}`
  const isWrong = clock < proven ? `, and ${shown}, which is wrong` : ''
  const others = `it is revoked, or the hub is not ${user}`
  return endsAt <= clock
    ? `it expired on ${day(endsAt)} if ${shown} rightly; otherwise ${others}`
    : `${others} (it ends on ${day(endsAt)}${isWrong})`
}

const nameOf = ({ subject }: X509Certificate): string => subject.replaceAll('\n', ', ')

/** Longer chains are refused. */
const MAX_CHAIN = 6
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
/** DER of object identifiers: name constraints (not checked here), and signatures with SHA-1 or MD5. */
const NAME_CONSTRAINTS = Buffer.from('0603551d1e', 'hex')
const WEAK = ['06092a864886f70d010105', '06092a864886f70d010104', '06072a8648ce3d0401'].map((hex) =>
  Buffer.from(hex, 'hex'),
)

/**
 * The chain from the server's certificate to an authority, or the reason why there is none. Used only if OpenSSL
 * reports a certificate that is not yet valid, because this verdict hides its others. Stricter than OpenSSL: refuses
 * chains with features that it does not check. `presented`: the server's certificate first.
 */
export function trustedChain(
  presented: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): readonly X509Certificate[] | CertificateProblem {
  const [leaf] = presented
  if (!leaf) return 'is missing'
  const usages = leaf.keyUsage as readonly string[] | undefined
  if (usages !== undefined && !usages.includes(SERVER_AUTH)) return 'is not for servers'
  const chain = [leaf]
  while (chain.length <= MAX_CHAIN) {
    const last = chain.at(-1)!
    const isAuthority = authorities.some(({ fingerprint256 }) => fingerprint256 === last.fingerprint256)
    if (isAuthority && isSelfIssued(last)) return chain
    const below = chain.length - 1
    const issuer = [...authorities, ...presented].find(
      (one) => one.fingerprint256 !== last.fingerprint256 && mayHaveIssued(one, last, below),
    )
    if (!issuer || WEAK.some((algorithm) => last.raw.includes(algorithm))) return 'is of an unknown authority'
    chain.push(issuer)
  }
  return 'has too long a chain'
}

const isSelfIssued = (certificate: X509Certificate): boolean =>
  certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey)

/** `below`: certificates of authorities between the issuer and the server's certificate. */
const mayHaveIssued = (issuer: X509Certificate, certificate: X509Certificate, below: number): boolean =>
  issuer.ca &&
  certificate.checkIssued(issuer) &&
  certificate.verify(issuer.publicKey) &&
  !issuer.raw.includes(NAME_CONSTRAINTS) &&
  below <= pathLengthOf(issuer)

/** The number of authorities that may be below this one (RFC 5280 §4.2.1.9). */
function pathLengthOf({ raw }: X509Certificate): number {
  const at = raw.indexOf(Buffer.from('0603551d13', 'hex'))
  // BasicConstraints: an octet string with a sequence of `cA` and, optionally, the length.
  const found = /^0603551d13(?:0101ff)?04..30..0101ff(?:0201(..))?/.exec(
    raw.subarray(at, at + 24).toString('hex'),
  )
  if (!found) return 0
  return found[1] === undefined ? Infinity : Number.parseInt(found[1], 16)
}

/** The certificates of a program: those in its settings, and its broker's. */
export class KnownCertificates {
  readonly #ends = new Map<string, { endsAt: number; lifetimeMs: number }>()

  /** `files`: the PEM of each setting. For a file with several certificates the first end counts. */
  constructor(files: Readonly<Record<string, string | undefined>>) {
    this.renew(files)
  }

  /** Call it after the files were replaced. */
  renew(files: Readonly<Record<string, string | undefined>>): void {
    for (const [name, pem] of Object.entries(files)) {
      const [first] = (pem === undefined ? [] : certificatesIn(pem)).toSorted((a, b) => endOf(a) - endOf(b))
      if (first) this.#ends.set(name, timesOf(first))
    }
  }

  /** Call it when a certificate of the broker was accepted. */
  readonly sawBroker = (certificate: X509Certificate): void => {
    this.#ends.set(BROKER_CERTIFICATE, timesOf(certificate))
  }

  readonly all = (): { name: string; endsAt: number; lifetimeMs: number }[] =>
    [...this.#ends].map(([name, times]) => ({ name, ...times }))
}

const timesOf = (certificate: X509Certificate) => ({
  endsAt: endOf(certificate),
  lifetimeMs: endOf(certificate) - Date.parse(certificate.validFrom),
})

/** The name of the certificate with which an enrolled hub logs in at its broker. */
export const HUB_CERTIFICATE = 'hub'
/** The name of the broker's certificate. */
export const BROKER_CERTIFICATE = 'broker'

/** The certificates in a text of PEM. */
export function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

/** A hub reports by this digest which authorities (PEM) it trusts. */
export const authoritiesDigest = (pem: string): string => createHash('sha256').update(pem).digest('hex')
