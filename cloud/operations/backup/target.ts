import * as files from 'node:fs'
import { createReadStream, createWriteStream, existsSync, readFileSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { makeFolder } from '../../../protocol/model/make-folder.ts'
import { folderStore } from '../../platform/media/folder-store.ts'
import { s3OptionsOf, type StoreCredentials } from '../../platform/media/open-store.ts'
import { listS3, s3Store } from '../../platform/media/s3-store.ts'
import { Manifest } from './archive.ts'

/** The output of `larder backup create` and `list` without `file`, and `scheduled`. The file `FILE.json` beside a backup stores it. */
export const BackupRecord = z.object({
  ...Manifest.pick({ created_at: true, version: true, schema_version: true, database: true }).shape,
  encrypted: z.boolean(),
  size_bytes: z.number(),
  /** SHA-256 of the whole file, in hexadecimal. */
  sha256: z.string(),
  media: Manifest.shape.media,
  /** Whether the schedule made it, and may delete it. */
  scheduled: z.boolean().default(false),
})
export type BackupRecord = z.infer<typeof BackupRecord>
export type ListedBackup = { file: string } & BackupRecord

/** A folder or a bucket that stores backups. */
export interface BackupTarget {
  put(name: string, from: string): Promise<void>
  get(name: string, to: string): Promise<void>
  /** The record beside a backup; undefined if there is none. */
  recordOf(name: string): Promise<BackupRecord | undefined>
  /** Every backup with a record, newest first. */
  list(): Promise<(ListedBackup & { name: string })[]>
  remove(name: string): Promise<void>
  /** The path or the s3: address of a backup. */
  addressOf(name: string): string
}

const NAME = /^[\w][\w.+-]*\.tar\.gz(\.age)?(\.json)?$/
const isName = (name: string): boolean => NAME.test(name)
const recordName = (name: string): string => `${name}.json`

/** `to`: a folder, or `s3://BUCKET[/PREFIX]?endpoint=URL&region=REGION`. */
export function openTarget(to: string, credentials: StoreCredentials): BackupTarget {
  const isS3 = to.startsWith('s3:')
  const bucket = isS3 ? s3OptionsOf('the target of a backup', to, credentials) : undefined
  const folder = resolve(to.replace(/^file:/, ''))
  const store = bucket ? s3Store(bucket, isName) : folderStore(folder, isName)
  const names = async (): Promise<string[]> =>
    bucket ? listS3(bucket) : existsSync(folder) ? await readdir(folder) : []

  async function recordOf(name: string): Promise<BackupRecord | undefined> {
    const stored = await store.read(recordName(name))
    return stored === null ? undefined : BackupRecord.parse(JSON.parse(await text(webStream(stored))))
  }

  function addressOf(name: string): string {
    if (!isS3) return resolve(folder, name)
    const [place, query] = to.split('?')
    return `${place!.replace(/\/+$/, '')}/${name}${query === undefined ? '' : `?${query}`}`
  }

  return {
    addressOf,
    recordOf,
    put(name, from) {
      if (!isS3) makeFolder(files, folder)
      return store.write(name, 'application/octet-stream', createReadStream(from))
    },
    async get(name, path) {
      const stored = await store.read(name)
      if (stored === null) throw new Error(`there is no backup ${addressOf(name)}`)
      await pipeline(Readable.fromWeb(webStream(stored)), createWriteStream(path))
    },
    async list() {
      const records = (await names()).filter((name) => isName(name) && name.endsWith('.json'))
      const listed = await Promise.all(
        records.map(async (record) => {
          const name = record.slice(0, -'.json'.length)
          return { name, file: addressOf(name), ...(await recordOf(name))! }
        }),
      )
      return listed.toSorted((a, b) => b.created_at.localeCompare(a.created_at))
    },
    async remove(name) {
      await store.remove(name)
      await store.remove(recordName(name))
    },
  }
}

/**
 * A backup by its path or s3: address: the local file, and the record beside it, if there is one. A file in a bucket is
 * downloaded into `folder`.
 */
export async function fetchBackup(
  file: string,
  credentials: StoreCredentials,
  folder: string,
): Promise<{ path: string; record: BackupRecord | undefined }> {
  if (!file.startsWith('s3:')) {
    const path = resolve(file)
    if (!existsSync(path)) throw new Error(`there is no file ${path}`)
    if (!statSync(path).isFile()) throw new Error(`${path} is not a file`)
    const record = existsSync(recordName(path)) && readFileSync(recordName(path), 'utf8')
    return { path, record: record ? BackupRecord.parse(JSON.parse(record)) : undefined }
  }
  const [place, query] = file.split('?')
  const end = place!.lastIndexOf('/')
  const target = openTarget(`${place!.slice(0, end)}${query === undefined ? '' : `?${query}`}`, credentials)
  const name = place!.slice(end + 1)
  const path = join(folder, 'fetched')
  await target.get(name, path)
  return { path, record: await target.recordOf(name) }
}

const webStream = (stream: ReadableStream<Uint8Array>) => stream as Parameters<typeof Readable.fromWeb>[0]
