import { execFileSync } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { timestamp } from '../../platform/calendar/days.ts'
import { latestRoot } from '../../gateway/desired-state.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { endOfList, rootFile, signMetadata, type ListChange, type Published } from './metadata.ts'
import { ApiError } from '../../platform/api-error.ts'
import { answerFile } from '../../platform/http/file-handlers.ts'
import type { Handlers } from '../../platform/http/handler.ts'

/** A release of the hub's service for one processor, as `larder releases` prints it. */
export interface ShownRelease {
  version: string
  processor: string
  file: string
  size_bytes: number
  sha256: string
  added_at: string
}

/** `package.json` of a packaged hub (`edge/packaging/build-package.ts`). */
const About = z.object({
  name: z.literal('larder-hub'),
  version: z.string().regex(/^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/),
  processor: z.enum(['amd64', 'arm64']),
})

/** All releases, newest first. */
export async function listReleases(q: Queries): Promise<ShownRelease[]> {
  const rows = await q
    .selectFrom('releases')
    .innerJoin('media', 'media.key', 'releases.key')
    .select(['version', 'processor', 'file', 'size', 'sha256', 'added_at'])
    .orderBy('added_at', 'desc')
    .orderBy('file')
    .execute()
  return rows.map(({ size, added_at, ...row }) => ({
    ...row,
    size_bytes: size,
    added_at: timestamp(added_at),
  }))
}

/** The keys that sign a change of the list. */
export interface SigningKeys {
  /** Content of `root.json`. */
  root: string
  /** The signing key, PEM. */
  signing: string
}

/** Runs in the transaction that publishes a change. */
export type Audit<T> = (tx: Tx, done: T) => Promise<void>

/**
 * Stores a tarball (a path) in the media store and adds it to the signed list of releases. Throws if the file is not a package of
 * a hub, if the version exists, or if the list has other keys.
 */
export async function addRelease(
  { db, runtime }: CloudContext,
  media: Media,
  { tarball, ...keys }: SigningKeys & { tarball: string },
  audit: Audit<ShownRelease>,
): Promise<ShownRelease> {
  const { version, processor } = readAbout(tarball)
  const file = `larder-hub_${version}_${processor}.tar.gz`
  await refuseKnown(db.kysely, file)
  const type = { mimeType: 'application/gzip', extension: 'gz' }
  const content = createReadStream(tarball) as AsyncIterable<Buffer>
  const stored = await media.store({ folder: 'releases', number: undefined, type, content })
  const { key, size: bytes, sha256 } = stored
  try {
    return await db.transact(async (tx) => {
      const now = runtime.clock.now()
      await publish(tx, keys, { add: { path: file, bytes, sha256 } }, now)
      await refuseKnown(tx.q, file)
      await media.keep(tx, [key])
      await tx.q.insertInto('releases').values({ file, version, processor, key, added_at: now }).execute()
      const release = (await listReleases(tx.q)).find((each) => each.file === file)!
      await audit(tx, release)
      return release
    })
  } catch (error) {
    await media.release([key])
    throw error
  }
}

/**
 * Takes a version out of the signed list: no hub installs it any more, and no rollout can start. Hubs that run it keep it. Throws
 * if no release has the version, or if a rollout of it is open.
 */
export async function removeRelease(
  { db, runtime }: CloudContext,
  media: Media,
  { version, ...keys }: SigningKeys & { version: string },
  audit: Audit<readonly string[]>,
): Promise<{ version: string; removed: readonly string[] }> {
  return db.transact(async (tx) => {
    const rows = await tx
      .forUpdate(tx.q.selectFrom('releases').select(['file', 'key', 'version']).orderBy('file'))
      .execute()
    const gone = rows.filter((row) => row.version === version)
    if (gone.length === 0)
      throw new Error(`no release has the version ${version}; larder releases list prints the versions`)
    const open = await tx.q
      .selectFrom('rollouts')
      .select(['id', 'state'])
      .where('version', '=', version)
      .where('state', 'in', ['running', 'paused'])
      .executeTakeFirst()
    if (open) throw new Error(`rollout ${open.id} of this version is ${open.state}: abort it first`)
    const removed = gone.map(({ file }) => file)
    await publish(tx, keys, { remove: removed }, runtime.clock.now())
    await tx.q.deleteFrom('releases').where('version', '=', version).execute()
    for (const { key } of gone) await media.remove(tx, key)
    await audit(tx, removed)
    return { version, removed }
  })
}

/** Signs the list again, and publishes the root of the keys: a first one before any release, or one that replaces the former. */
export const signReleases = (
  { db, runtime }: CloudContext,
  keys: SigningKeys,
  audit: Audit<string>,
): Promise<{ root: string; expires_at: string }> =>
  db.transact(async (tx) => {
    const list = await publish(tx, keys, {}, runtime.clock.now())
    const root = rootFile(keys.root)
    await audit(tx, root)
    return { root, expires_at: timestamp(endOfList(list)) }
  })

/** Publishes a changed list. Returns it. */
async function publish(tx: Tx, keys: SigningKeys, change: ListChange, now: number): Promise<string> {
  // A second change waits for this row, and then reads the list of the first.
  await storeMetadata(tx, { lock: '{}' })
  let made: Record<string, string>
  try {
    made = signMetadata(keys, await readPublished(tx.q), change, now)
  } catch (error) {
    throw new Error(`bad signature: ${(error as Error).message}`, { cause: error })
  }
  await storeMetadata(tx, made)
  return made['targets.json']!
}

async function storeMetadata(tx: Tx, made: Record<string, string>): Promise<void> {
  for (const [name, body] of Object.entries(made))
    await tx.q
      .insertInto('release_metadata')
      .values({ name, body })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ body }))
      .execute()
}

/** The latest root and the signed list; undefined before the first. */
async function readPublished(q: Queries): Promise<Published | undefined> {
  const root = await latestRoot(q)
  return root === undefined ? undefined : { root, list: await readMetadata(q, 'targets.json') }
}

/** When the signed list ends, in milliseconds since the Unix epoch; undefined without one. `larder releases sign` renews it. */
export async function endOfReleases(q: Queries): Promise<number | undefined> {
  const list = await readMetadata(q, 'targets.json')
  return list === undefined ? undefined : endOfList(list)
}

/** A signed metadata file; undefined if it does not exist. */
export async function readMetadata(q: Queries, name: string): Promise<string | undefined> {
  const row = await q
    .selectFrom('release_metadata')
    .select('body')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.body
}

async function refuseKnown(q: Queries, file: string): Promise<void> {
  const known = await q.selectFrom('releases').select('file').where('file', '=', file).executeTakeFirst()
  if (known) throw new Error(`the version exists: ${file}`)
}

function readAbout(tarball: string): z.infer<typeof About> {
  try {
    const read = ['-xzOf', tarball, 'larder/hub/package.json']
    return About.parse(
      JSON.parse(execFileSync('tar', read, { stdio: ['ignore', 'pipe', 'ignore'] }).toString()),
    )
  } catch (error) {
    throw new Error(`${tarball} is not the tarball of a hub's package (npm run package -- hub)`, {
      cause: error,
    })
  }
}

/** Serves the signed list of releases and their files to hubs. Hubs verify the signatures, so the routes need no credential. */
export function releaseHandlers(
  { db }: CloudContext,
  media: Media,
): Handlers<'root.releases.metadata' | 'root.releases.file'> {
  return {
    async 'root.releases.metadata'({ params }) {
      const body = await readMetadata(db.kysely, params.file)
      if (body === undefined) throw new ApiError('not_found', 'The list of releases has no such file.')
      return JSON.parse(body) as Record<string, unknown>
    },
    async 'root.releases.file'(input) {
      const { file } = input.params
      const release = await db.kysely
        .selectFrom('releases')
        .select('key')
        .where('file', '=', file)
        .executeTakeFirst()
      const stored = release && (await media.find(release.key))
      if (!stored) throw new ApiError('not_found', 'There is no such release.')
      return answerFile(input, stored, media, { 'Cache-Control': 'public, max-age=86400, immutable' })
    },
  }
}
