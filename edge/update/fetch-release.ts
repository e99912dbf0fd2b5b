import { execFileSync } from 'node:child_process'
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { BaseFetcher, Updater, type TargetFile, type UpdaterOptions } from 'tuf-js'
import { DownloadHTTPError, DownloadLengthMismatchError, ExpiredMetadataError } from 'tuf-js/dist/error.js'
import type { DesiredRelease } from '../../protocol/mqtt/cloud-entries.ts'
import { copyDurably } from './durable.ts'
import { partOf, tarballOf } from './files.ts'
import { RefusedRelease } from './updater.ts'

export interface FetchOptions {
  /** Folder of the installed versions. */
  releases: string
  /** File of the trusted root. */
  root: string
  /** Node's name of the processor. */
  arch: string
  /** The time that the hub's service knows from the cloud. Undefined: the clock of the board counts, which may be wrong. */
  provenNow?: number | undefined
}

/** Maximum time of the download of one metadata file. */
const METADATA_MS = 60_000
/** A stalled transfer ends after this time. The next attempt continues it. */
const TRANSFER_MS = 3_600_000
/** Free space that an update needs, relative to its tarball: the tarball, its content, and the copy of the journal. */
const SPACE = 5

/**
 * Installs a release into its own folder. The trusted root verifies the list of releases (TUF): an older, expired or wrongly
 * signed list is refused. An interrupted download is continued. Throws `RefusedRelease`, or another error if a later attempt
 * may succeed.
 */
export async function fetchRelease(
  { version, url }: DesiredRelease,
  { releases, root, arch, provenNow }: FetchOptions,
): Promise<void> {
  const metadata = join(releases, 'metadata')
  mkdirSync(metadata, { recursive: true, mode: 0o700 })
  if (!existsSync(root))
    throw new RefusedRelease(`UPDATE_ROOT: ${root} is missing, so the hub trusts no list of releases`)
  const stored = join(metadata, 'root.json')
  // A power failure can tear the root that tuf-js stores. The list then leads again from the trusted root to the present one.
  if (!isWhole(stored)) copyDurably(root, stored)
  const file = tarballOf(version, arch)
  const options = { metadataDir: metadata, metadataBaseUrl: `${url}/metadata`, provenNow }
  const target = await findTarget(options, file)
  if (!target) throw new RefusedRelease(`the signed list of releases does not contain ${file}`)
  const folder = join(releases, version)
  if (existsSync(folder)) return
  const { bavail, bsize } = statfsSync(releases)
  const needed = target.length * SPACE
  if (bavail * bsize < needed)
    throw new Error(
      `the release needs ${megabytes(needed)} MB of the disk, and ${megabytes(bavail * bsize)} MB are free`,
    )
  const part = join(releases, partOf(version, arch))
  await download(`${url}/files/${encodeURIComponent(file)}`, part, target)
  unpack(part, folder)
  rmSync(part)
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

/** Whether a file of JSON is present and complete. */
function isWhole(path: string): boolean {
  try {
    JSON.parse(readFileSync(path, 'utf8'))
    return true
  } catch {
    return false
  }
}

type ListOptions = Pick<UpdaterOptions, 'metadataDir' | 'metadataBaseUrl'> & Pick<FetchOptions, 'provenNow'>

/** The entry of a file in the signed list. A second attempt precedes a refusal: a new release can replace the list at any time. */
async function findTarget(
  options: ListOptions,
  file: string,
  isSecond = false,
): Promise<TargetFile | undefined> {
  const fetcher = new MetadataFetcher()
  try {
    const updater = new Updater({ ...options, fetcher })
    const { provenNow } = options
    // tuf-js has no option for its time, which its store reads once.
    if (provenNow !== undefined)
      Object.assign(Reflect.get(updater, 'trustedSet') as object, { referenceTime: new Date(provenNow) })
    await updater.refresh()
    return await updater.getTargetInfo(file)
  } catch (error) {
    const { message, constructor } = error as Error
    const reason = `the list of releases at ${options.metadataBaseUrl}: ${message}`
    const isClockWrong = error instanceof ExpiredMetadataError && options.provenNow === undefined
    if (fetcher.hasFailed || isClockWrong || isUnreachable.test(constructor.name) || isUnsaved.test(message))
      throw new Error(reason, { cause: error })
    if (isSecond) throw new RefusedRelease(reason)
    return findTarget(options, file, true)
  }
}

/** The fetcher of tuf-js brings 40 packages (`packaging/bundle.ts`). */
class MetadataFetcher extends BaseFetcher {
  /** Whether a download failed. The errors of tuf-js do not tell. */
  hasFailed = false

  async fetch(url: string): Promise<NodeJS.ReadableStream> {
    const response = await fetch(url, { signal: AbortSignal.timeout(METADATA_MS) })
    if (!response.ok || !response.body)
      throw new DownloadHTTPError(`status ${response.status}`, response.status)
    return Readable.fromWeb(response.body)
  }

  override async downloadBytes(url: string, maxLength: number): Promise<Buffer> {
    try {
      return await super.downloadBytes(url, maxLength)
    } catch (error) {
      const isAbsent = error instanceof DownloadHTTPError && [403, 404].includes(error.statusCode)
      this.hasFailed = !isAbsent && !(error instanceof DownloadLengthMismatchError)
      throw error
    }
  }
}

/** Errors of the connection. All other errors of tuf-js concern the content, or have another cause below. */
const isUnreachable = /^(DownloadHTTPError|DOMException|TypeError|Error)$/
/** The disk is full or fails. tuf-js puts this error into the text of another one. */
const isUnsaved = /Failed to persist metadata/

/**
 * Downloads a file, continues an earlier download, and verifies the result. A wrong file is removed, and only a whole fresh download
 * refuses the release: a power failure can damage the earlier part.
 */
async function download(address: string, part: string, target: TargetFile): Promise<void> {
  const had = existsSync(part) ? statSync(part).size : 0
  if (had < target.length) {
    const response = await fetch(address, {
      headers: had > 0 ? { Range: `bytes=${had}-` } : {},
      signal: AbortSignal.timeout(TRANSFER_MS),
    })
    if (!response.ok || !response.body) throw new Error(`${address} answered ${response.status}`)
    const isPart = response.status === 206
    let left = target.length - (isPart ? had : 0)
    const body: AsyncIterable<Uint8Array> = Readable.fromWeb(response.body as ReadableStream<Uint8Array>)
    async function* bounded(): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        left -= chunk.length
        if (left < 0) return
        yield chunk
      }
    }
    await pipeline(bounded, createWriteStream(part, { flags: isPart ? 'a' : 'w', mode: 0o600 }))
    const length = response.headers.get('Content-Length')
    const isWhole = length !== null && Number(length) === target.length - (isPart ? had : 0) - left
    // The next attempt continues after an early end of the connection.
    if (left > 0 && !isWhole) throw new Error(`${address} ended ${left} bytes too early`)
  }
  try {
    await target.verify(createReadStream(part))
  } catch (error) {
    rmSync(part)
    if (had > 0) return download(address, part, target)
    throw new RefusedRelease(`${address} is not the signed file: ${(error as Error).message}`)
  }
}

/** Unpacks a tarball. The folder gets its name after every byte is on the disk. */
function unpack(tarball: string, folder: string): void {
  const draft = `${folder}.draft`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  execFileSync('tar', ['-xzf', tarball, '-C', draft, '--strip-components=1', '--no-same-owner'])
  execFileSync('sync', ['--file-system', draft])
  renameSync(draft, folder)
  execFileSync('sync', ['--file-system', folder])
}
