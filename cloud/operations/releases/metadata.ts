import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto'
import {
  Key,
  MetaFile,
  Metadata,
  MetadataKind,
  Root,
  Signature,
  Snapshot,
  TargetFile,
  Targets,
  Timestamp,
} from '@tufjs/models'

/**
 * Signed metadata of releases (The Update Framework, TUF 1.0). The root names the keys. `targets.json` lists the files with their
 * checksums. Snapshot and timestamp name the newest version of that list, so a hub refuses an older one.
 */

/** A metadata file, as hubs download it. */
export type MetadataFile = '1.root.json' | 'targets.json' | 'snapshot.json' | 'timestamp.json'
export const metadataFiles = ['1.root.json', 'targets.json', 'snapshot.json', 'timestamp.json'] as const

/** A file that hubs may install. */
export interface ReleaseFile {
  path: string
  bytes: number
  sha256: string
}

/** Version of the TUF specification. */
const specVersion = '1.0.31'
const YEAR_MS = 365 * 86_400_000
/** Nobody visits a hub to replace its root. */
const ROOT_MS = 20 * YEAR_MS
/** Each added release renews the list. */
const LIST_MS = YEAR_MS

/** Creates the keys of an installation (Ed25519, PEM), and the root that names them, by file name. */
export function makeKeys(now: number): Record<'root.key' | 'signing.key' | 'root.json', string> {
  const [root, signing] = [newKey(), newKey()]
  const expires = after(now, ROOT_MS)
  const body = new Root({ specVersion, version: 1, expires, consistentSnapshot: false })
  body.addKey(publicKeyOf(root), MetadataKind.Root)
  for (const role of [MetadataKind.Targets, MetadataKind.Snapshot, MetadataKind.Timestamp])
    body.addKey(publicKeyOf(signing), role)
  return { 'root.key': root, 'signing.key': signing, 'root.json': signed(body, root) }
}

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/**
 * Adds a file to the current list, or creates the list. Throws if the root does not trust the signing key, or if the current
 * list has another signature.
 */
export function addToMetadata(
  root: string,
  current: string | undefined,
  added: ReleaseFile,
  { signing, now }: { signing: string; now: number },
): Record<MetadataFile, string> {
  const trusted = Metadata.fromJSON(MetadataKind.Root, JSON.parse(root) as never)
  const former =
    current === undefined ? undefined : Metadata.fromJSON(MetadataKind.Targets, JSON.parse(current) as never)
  if (former) trusted.verifyDelegate(MetadataKind.Targets, former)
  const version = (former?.signed.version ?? 0) + 1
  const expires = after(now, LIST_MS)
  const targets = new Targets({ specVersion, version, expires, targets: { ...former?.signed.targets } })
  const { path, bytes, sha256 } = added
  targets.addTarget(new TargetFile({ path, length: bytes, hashes: { sha256 } }))
  const made = new Metadata(targets)
  made.sign(signerOf(signing))
  trusted.verifyDelegate(MetadataKind.Targets, made)
  const snapshot = new Snapshot({
    specVersion,
    version,
    expires,
    meta: { 'targets.json': new MetaFile({ version }) },
  })
  const timestamp = new Timestamp({ specVersion, version, expires, snapshotMeta: new MetaFile({ version }) })
  return {
    '1.root.json': root,
    'targets.json': JSON.stringify(made.toJSON()),
    'snapshot.json': signed(snapshot, signing),
    'timestamp.json': signed(timestamp, signing),
  }
}

const after = (now: number, ms: number): string => new Date(now + ms).toISOString().replace(/\.\d+Z$/, 'Z')

function signed(body: Root | Snapshot | Timestamp, key: string): string {
  const metadata = new Metadata(body)
  metadata.sign(signerOf(key))
  return JSON.stringify(metadata.toJSON())
}

function signerOf(pem: string): (data: Buffer) => Signature {
  const key = createPrivateKey(pem)
  const keyID = idOf(createPublicKey(key))
  return (data) => new Signature({ keyID, sig: sign(undefined, data, key).toString('hex') })
}

function publicKeyOf(pem: string): Key {
  const key = createPublicKey(createPrivateKey(pem))
  const text = key.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')
  return new Key({ keyID: idOf(key), keyType: 'ed25519', scheme: 'ed25519', keyVal: { public: text } })
}

/** The id of a key in the metadata: its digest. */
const idOf = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
