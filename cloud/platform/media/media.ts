import { createHash } from 'node:crypto'
import type { MediaFolder } from '../../../protocol/contract/form.ts'
import { uuidv7 } from '../../../protocol/model/ids.ts'
import { background, isolated } from '../work/background.ts'
import type { CloudContext } from '../context.ts'
import type { Queries, Tx } from '../store/database.ts'
import { schedule, unschedule } from '../work/queue.ts'
import { done, type Outcome, type WorkKinds } from '../work/runner.ts'
import type { MediaType } from './media-type.ts'
import { ownCleaning, type Cleaning } from './clean/cleaning.ts'
import type { MediaSigner } from './addresses.ts'
import type { ByteRange, MediaStore } from './store.ts'
import { unavailable } from '../unavailable.ts'

export interface StoredFile {
  key: string
  mimeType: string
  size: number
  sha256: string
}

interface FileToStore {
  folder: MediaFolder | 'releases'
  /** The number of the object that owns it, if its folder is numbered. */
  number: number | undefined
  type: Omit<MediaType, 'kind'> & Partial<MediaType>
  content: AsyncIterable<Uint8Array>
}

/**
 * Files: their bytes in the media store, and one row per file in the database. The row is committed before the file is
 * written, and deleted after the file, so that no crash leaves a file without a row.
 */
export interface Media {
  /** The next id of an object with its own folder. */
  nextNumber(folder: MediaFolder): Promise<number>
  /** Stores a file. Due work removes it unless a transaction keeps it. */
  store(file: FileToStore): Promise<StoredFile>
  /** Keeps files, in the transaction that refers to them. Throws if one of them is gone. */
  keep(tx: Tx, keys: readonly string[]): Promise<void>
  /** Removes a file after the commit. Call it in the transaction that drops the last reference to the file. */
  remove(tx: Tx, key: string): Promise<void>
  /** Removes the files that no transaction has kept. */
  release(keys: readonly string[]): Promise<void>
  /** Due work that removes files of dead requests, and files that could not be removed before. */
  work: WorkKinds
  /** A kept file, or null. */
  find(key: string): Promise<StoredFile | null>
  read(key: string, range?: ByteRange): Promise<ReadableStream<Uint8Array> | null>
  /** An address from which anyone can download the file for a limited time. */
  addressOf(key: string): string
  /** Cleans files before they are stored. */
  cleaning: Cleaning
}

interface MediaOptions {
  context: CloudContext
  store: MediaStore
  signer: MediaSigner
  /** Default: in the caller's own thread. */
  cleaning?: Cleaning | undefined
}

/** Milliseconds until an interrupted removal is retried. */
const REMOVE_AGAIN_MS = 1000

/** The id of a new object with possible files in this folder. */
export async function nextNumber(q: Queries, folder: MediaFolder): Promise<number> {
  const { last } = await q
    .insertInto('media_folders')
    .values({ folder, last: 1 })
    .onConflict((conflict) =>
      conflict.column('folder').doUpdateSet((eb) => ({ last: eb('media_folders.last', '+', 1) })),
    )
    .returning('last')
    .executeTakeFirstOrThrow()
  return last
}

/** Marks a file that no transaction has kept as removed. False if it was kept or does not exist. */
function giveUp({ db, runtime }: CloudContext, key: string): Promise<boolean> {
  return db.transact(async (tx) => {
    const row = await tx.q
      .updateTable('media')
      .set({ state: 'removed' })
      .where('key', '=', key)
      .where('state', '=', 'pending')
      .returning('key')
      .executeTakeFirst()
    if (row) await schedule(tx, 'media.file', key, runtime.clock.now() + REMOVE_AGAIN_MS)
    return row !== undefined
  })
}

/** Removes a file by due work, in the transaction that drops the last reference to the file. */
export async function removeLater(tx: Tx, key: string, dueAt: number): Promise<void> {
  await tx.q.updateTable('media').set({ state: 'removed' }).where('key', '=', key).execute()
  await schedule(tx, 'media.file', key, dueAt)
}

async function keep(tx: Tx, keys: readonly string[]): Promise<void> {
  for (const key of keys) {
    const { numUpdatedRows } = await tx.q
      .updateTable('media')
      .set({ state: 'kept' })
      .where('key', '=', key)
      .where('state', '=', 'pending')
      .executeTakeFirst()
    if (numUpdatedRows !== 1n) throw new Error(`the file ${key} is no longer there`)
    await unschedule(tx, 'media.file', key)
  }
}

async function find(q: Queries, key: string) {
  const row = await q
    .selectFrom('media')
    .selectAll()
    .where('key', '=', key)
    .where('state', '=', 'kept')
    .executeTakeFirst()
  return row ? { key, mimeType: row.mime_type, size: row.size, sha256: row.sha256 } : null
}

export function createMedia({ context, cleaning = ownCleaning, signer, ...options }: MediaOptions): Media {
  const store = namedStore(options.store)
  const { db, runtime, checkpoint, settings } = context
  const { clock } = runtime
  const q = db.kysely

  /** Deletes a file whose row is in state `removed`: first the bytes, then the row. */
  async function purge(key: string): Promise<void> {
    checkpoint('media.before-remove')
    await store.remove(key)
    checkpoint('media.after-remove')
    await db.transact(async (tx) => {
      await tx.q.deleteFrom('media').where('key', '=', key).where('state', '=', 'removed').execute()
      await unschedule(tx, 'media.file', key)
    })
  }

  async function endUnfinished(key: string): Promise<Outcome> {
    const row = await q.selectFrom('media').select('state').where('key', '=', key).executeTakeFirst()
    if (row?.state === 'removed' || (row?.state === 'pending' && (await giveUp(context, key))))
      await purge(key)
    return done
  }

  async function release(keys: readonly string[]): Promise<void> {
    // A failure here must not hide why the request ended. Due work removes the remaining files.
    await isolated(context, 'removal of files', async () => {
      for (const key of keys) if (await giveUp(context, key)) await purge(key)
    })
  }

  return {
    cleaning,
    nextNumber: (folder) => nextNumber(q, folder),

    async store({ folder, number, type, content }) {
      const place = number === undefined ? folder : `${folder}/${number}`
      const key = `${place}/${uuidv7(runtime)}.${type.extension}`
      const { mimeType } = type
      const now = clock.now()
      await db.transact(async (tx) => {
        await tx.q
          .insertInto('media')
          .values({ key, state: 'pending', mime_type: mimeType, size: 0, sha256: '', created_at: now })
          .execute()
        await schedule(tx, 'media.file', key, now + settings.orphanedFileMs)
      })
      checkpoint('media.before-write')
      const hash = createHash('sha256')
      let size = 0
      async function* measured(): AsyncGenerator<Uint8Array> {
        for await (const chunk of content) {
          size += chunk.byteLength
          hash.update(chunk)
          yield chunk
        }
      }
      try {
        await store.write(key, mimeType, measured())
      } catch (error) {
        await release([key])
        throw error
      }
      checkpoint('media.after-write')
      const sha256 = hash.digest('hex')
      await q.updateTable('media').set({ size, sha256 }).where('key', '=', key).execute()
      return { key, mimeType, size, sha256 }
    },

    keep,

    async remove(tx, key) {
      await removeLater(tx, key, clock.now() + REMOVE_AGAIN_MS)
      tx.afterCommit(() => background(context, 'removal of a file', () => purge(key)))
    },

    release,

    work: { 'media.file': { run: ({ subject }) => endUnfinished(subject) } },

    find: (key) => find(q, key),
    read: (key, range) => store.read(key, range),
    addressOf: (key) => signer.addressOf(key),
  }
}

/** Names the store in its errors, so that callers answer 503. Errors of the written content stay unchanged. */
function namedStore(store: MediaStore): MediaStore {
  const named = (error: unknown) => unavailable('the media store (MEDIA_URL)', error)
  return {
    async write(key, mimeType, content) {
      let fault: { error: unknown } | undefined
      async function* watched(): AsyncGenerator<Uint8Array> {
        try {
          yield* content
        } catch (error) {
          fault = { error }
          throw error
        }
      }
      try {
        await store.write(key, mimeType, watched())
      } catch (error) {
        throw fault ? fault.error : named(error)
      }
    },

    read: (key, range) =>
      store.read(key, range).catch((error: unknown) => {
        throw named(error)
      }),

    remove: (key) =>
      store.remove(key).catch((error: unknown) => {
        throw named(error)
      }),
  }
}
