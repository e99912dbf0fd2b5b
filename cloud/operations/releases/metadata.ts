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

/** A file that hubs may install. */
export interface ReleaseFile {
  path: string
  bytes: number
  sha256: string
}

/** Version of the TUF specification. */
const specVersion = '1.0.31'
const YEAR_MS = 365 * 86_400_000
/** No technician visits a hub to replace its root. */
const ROOT_MS = 20 * YEAR_MS
/** Each change of the list renews it. */
const LIST_MS = YEAR_MS

/** The keys of an installation (Ed25519, PEM), and the root that names them, by file name. */
export type ReleaseKeys = Record<'root.key' | 'signing.key' | 'root.json', string>

/** Creates the first keys, or keys that replace the former ones: their root then has the signatures of both root keys. */
export function makeKeys(now: number, former?: Pick<ReleaseKeys, 'root.key' | 'root.json'>): ReleaseKeys {
  const [root, signing] = [newKey(), newKey()]
  const expires = after(now, ROOT_MS)
  const version = former ? rootOf(former['root.json']).signed.version + 1 : 1
  const body = new Root({ specVersion, version, expires, consistentSnapshot: false })
  body.addKey(publicKeyOf(root), MetadataKind.Root)
  for (const role of [MetadataKind.Targets, MetadataKind.Snapshot, MetadataKind.Timestamp])
    body.addKey(publicKeyOf(signing), role)
  const made = new Metadata(body)
  made.sign(signerOf(root))
  if (former) {
    made.sign(signerOf(former['root.key']))
    rootOf(former['root.json']).verifyDelegate(MetadataKind.Root, made)
  }
  return { 'root.key': root, 'signing.key': signing, 'root.json': JSON.stringify(made.toJSON()) }
}

const rootOf = (text: string) => Metadata.fromJSON(MetadataKind.Root, JSON.parse(text) as never)

/** The name of a root among the metadata. */
export const rootFile = (root: string): string => `${rootOf(root).signed.version}.root.json`

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

/** The latest root, which hubs trust, and the list of releases (`targets.json`), signed with the root's signing key. */
export interface Published {
  root: string
  list: string | undefined
}

export interface ListChange {
  add?: ReleaseFile
  /** Paths of files that hubs must not install any more. */
  remove?: readonly string[]
}

/**
 * Changes the list of files and signs it again, valid from `now`. Throws if the root is neither the published one nor signed
 * by it, if the root does not trust the signing key, or if the published list has another signature.
 */
export function signMetadata(
  { root, signing }: { root: string; signing: string },
  published: Published | undefined,
  { add, remove = [] }: ListChange,
  now: number,
): Record<string, string> {
  const trusted = rootOf(root)
  const former = published && rootOf(published.root)
  if (former && published.root !== root) {
    if (trusted.signed.version !== former.signed.version + 1)
      throw new Error('hubs trust another root than root.json of --keys')
    former.verifyDelegate(MetadataKind.Root, trusted)
  }
  trusted.verifyDelegate(MetadataKind.Root, trusted)
  const list =
    published?.list === undefined
      ? undefined
      : Metadata.fromJSON(MetadataKind.Targets, JSON.parse(published.list) as never)
  if (list) former!.verifyDelegate(MetadataKind.Targets, list)
  // Hubs refuse a lower number than they have verified. The time is above each number that a newer database than this one has used.
  const version = Math.max((list?.signed.version ?? 0) + 1, Math.floor(now / 1000))
  const expires = after(now, LIST_MS)
  const kept = Object.entries(list?.signed.targets ?? {}).filter(([path]) => !remove.includes(path))
  const targets = new Targets({ specVersion, version, expires, targets: Object.fromEntries(kept) })
  if (add) {
    const { path, bytes, sha256 } = add
    targets.addTarget(new TargetFile({ path, length: bytes, hashes: { sha256 } }))
  }
  const made = new Metadata(targets)
  made.sign(signerOf(signing))
  trusted.verifyDelegate(MetadataKind.Targets, made)
  const meta = { 'targets.json': new MetaFile({ version }) }
  const snapshot = new Snapshot({ specVersion, version, expires, meta })
  const timestamp = new Timestamp({ specVersion, version, expires, snapshotMeta: new MetaFile({ version }) })
  return {
    [rootFile(root)]: root,
    'targets.json': JSON.stringify(made.toJSON()),
    'snapshot.json': signed(snapshot, signing),
    'timestamp.json': signed(timestamp, signing),
  }
}

/** When a signed list ends, in milliseconds since the Unix epoch. */
export const endOfList = (list: string): number =>
  Date.parse(Metadata.fromJSON(MetadataKind.Targets, JSON.parse(list) as never).signed.expires)

const after = (now: number, ms: number): string => new Date(now + ms).toISOString().replace(/\.\d+Z$/, 'Z')

function signed(body: Snapshot | Timestamp, key: string): string {
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
