import { execFileSync } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { z } from 'zod'
import { timestamp } from '../../platform/calendar/timestamps.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Media } from '../../platform/media/media.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { addToMetadata, type MetadataFile, type ReleaseFile } from './metadata.ts'

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

export interface ReleaseToAdd {
  /** Path of the tarball of `npm run package -- hub`. */
  tarball: string
  /** Content of `root.json`. */
  root: string
  /** The signing key, PEM. */
  signing: string
}

/**
 * Stores a tarball in the media store and adds it to the signed list of releases. Throws if the file is not a package of a hub,
 * if the version exists, or if the list has other keys. `audit` runs in the transaction that publishes the release.
 */
export async function addRelease(
  { db, runtime }: CloudContext,
  media: Media,
  { tarball, root, signing }: ReleaseToAdd,
  audit: (tx: Tx, release: ShownRelease) => Promise<void>,
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
      await publish(tx, root, { path: file, bytes, sha256 }, { signing, now })
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

async function publish(
  tx: Tx,
  root: string,
  added: ReleaseFile,
  how: { signing: string; now: number },
): Promise<void> {
  // The insert locks the root, so a second addition waits and then reads the list of the first.
  const { body: known } = await tx.q
    .insertInto('release_metadata')
    .values({ name: '1.root.json', body: root })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet((eb) => ({ body: eb.ref('release_metadata.body') })),
    )
    .returning('body')
    .executeTakeFirstOrThrow()
  if (known !== root) throw new Error('bad signature: hubs trust another root than root.json of --keys')
  const current = await readMetadata(tx.q, 'targets.json')
  let made: Record<MetadataFile, string>
  try {
    made = addToMetadata(root, current, added, how)
  } catch (error) {
    throw new Error(`bad signature: ${(error as Error).message}`, { cause: error })
  }
  for (const [name, body] of Object.entries(made))
    await tx.q
      .insertInto('release_metadata')
      .values({ name, body })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ body }))
      .execute()
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
