import { createPublicKey, timingSafeEqual } from 'node:crypto'
import ssh2, { type ParsedKey } from 'ssh2'
import { fingerprintOf } from '../../protocol/management/ssh.ts'

/** A public key that may log in. */
export interface AuthorizedKey {
  key: ParsedKey
  /** In SSH's wire format. */
  wire: Buffer
  fingerprint: string
  /** The text after the key: a name for the log. */
  comment: string
}

const types: ReadonlySet<string> = new Set([
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
])
const LEAST_RSA_BITS = 2048

export interface AuthorizedKeys {
  keys: AuthorizedKey[]
  /** Rejected lines, by number and reason. */
  problems: string[]
}

/**
 * Parses a file of authorized keys, one per line; empty lines and comments are skipped. A line that starts
 * with options is rejected: an option would restrict its key, and this parser supports none.
 */
export function parseAuthorizedKeys(text: string): AuthorizedKeys {
  const keys: AuthorizedKey[] = []
  const problems: string[] = []
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const result = parseLine(line)
    if (typeof result === 'string') problems.push(`line ${index + 1}: ${result}`)
    else keys.push(result)
  }
  return { keys, problems }
}

function parseLine(line: string): AuthorizedKey | string {
  const [type = '', base64 = '', ...comment] = line.split(/\s+/)
  if (!types.has(type)) return `not a key of a type that is taken (${[...types].join(', ')}), or with options`
  const key = ssh2.utils.parseKey(`${type} ${base64}`)
  if (key instanceof Error) return key.message
  if (key.type !== type) return `the key is a ${key.type}, and the line names ${type}`
  if (key.isPrivateKey()) return 'a private key'
  if (type === 'ssh-rsa') {
    const bits = createPublicKey(key.getPublicPEM()).asymmetricKeyDetails?.modulusLength ?? 0
    if (bits < LEAST_RSA_BITS) return `an RSA key of ${bits} bits; at least ${LEAST_RSA_BITS} are needed`
  }
  const wire = key.getPublicSSH()
  return { key, wire, fingerprint: fingerprintOf(wire), comment: comment.join(' ').slice(0, 200) }
}

export interface PublicKeyAttempt {
  key: { algo: string; data: Buffer }
  /** Absent while the client only queries whether the key is accepted. */
  signature?: Buffer | undefined
  blob?: Buffer | undefined
  hashAlgo?: string | undefined
}

/** The authorized key that an attempt offers. If the attempt is signed, its signature must be valid. */
export function authorize(
  keys: readonly AuthorizedKey[],
  attempt: PublicKeyAttempt,
): AuthorizedKey | undefined {
  const { algo, data } = attempt.key
  const found = keys.find(
    ({ key, wire }) => key.type === algo && wire.length === data.length && timingSafeEqual(wire, data),
  )
  if (!found) return undefined
  // SHA-1 signatures of RSA keys are forgeable.
  if (algo === 'ssh-rsa' && attempt.hashAlgo !== 'sha256' && attempt.hashAlgo !== 'sha512') return undefined
  if (attempt.signature === undefined) return found
  if (attempt.blob === undefined) return undefined
  // For a signature that cannot be checked, `verify` returns an error, which is not `true`.
  const verdict: unknown = found.key.verify(attempt.blob, attempt.signature, attempt.hashAlgo)
  return verdict === true ? found : undefined
}
