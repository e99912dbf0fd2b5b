import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import * as files from 'node:fs'
import { join, resolve } from 'node:path'
import { sql } from 'kysely'
import { PRODUCT_VERSION } from '../../../protocol/build.ts'
import { makeFolder } from '../../../protocol/model/make-folder.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import { openDatabase } from '../../platform/store/database.ts'
import { placeOf } from '../../platform/store/outage.ts'
import { databaseFile, pack, type Manifest } from './archive.ts'
import { backupDatabase, kindOf } from './databases.ts'
import { inDraft, secretsOf, type Installation } from './place.ts'
import { openTarget, type BackupRecord, type ListedBackup } from './target.ts'

/**
 * Makes a backup while the service runs. The database comes first: files that are added later do no harm. `config`: the
 * text of `cloud.json`.
 */
export function createBackup(
  installation: Installation,
  { to, config, scheduled }: { to: string; config: string; scheduled: boolean },
): Promise<ListedBackup> {
  const { databaseUrl, mediaUrl, credentials, passphrase, settings, runtime } = installation
  const target = openTarget(to, credentials)
  return inDraft(installation, async (draft) => {
    const created_at = timestamp(runtime.clock.now())
    const database = kindOf(databaseUrl)
    const schema = await backupDatabase(databaseUrl).copyTo(join(draft, databaseFile(database)))
    if (!schema) throw new Error(`DATABASE_URL: ${placeOf(databaseUrl)} is no database of Larder yet`)
    const isLocal = mediaUrl.startsWith('file:')
    const manifest: Manifest = {
      format: 1,
      created_at,
      version: PRODUCT_VERSION,
      ...schema,
      database,
      media: isLocal ? 'included' : 'manifest',
    }
    writeFileSync(join(draft, 'manifest.json'), JSON.stringify(manifest))
    writeFileSync(join(draft, 'cloud.json'), config)
    mkdirSync(join(draft, 'secrets'))
    for (const [name, secret] of secretsOf(settings)) writeFileSync(join(draft, 'secrets', name), secret)
    if (isLocal) {
      const folder = resolve(mediaUrl.slice('file:'.length))
      makeFolder(files, folder)
      symlinkSync(folder, join(draft, 'media'))
    } else writeFileSync(join(draft, 'media.json'), JSON.stringify(await mediaList(databaseUrl)))
    const members = ['manifest.json', databaseFile(database), 'cloud.json', 'secrets']
    const name = `larder-${created_at.replaceAll(/[:.]/g, '-')}.tar.gz${passphrase === undefined ? '' : '.age'}`
    const packed = join(draft, name)
    const size = await pack(draft, [...members, isLocal ? 'media' : 'media.json'], packed, passphrase)
    const { version, schema_version, media } = manifest
    const about = { created_at, version, schema_version, database, encrypted: passphrase !== undefined }
    const record: BackupRecord = { ...about, ...size, media, scheduled }
    await target.put(name, packed)
    writeFileSync(join(draft, 'record'), JSON.stringify(record))
    await target.put(`${name}.json`, join(draft, 'record'))
    return { file: target.addressOf(name), ...record }
  })
}

/** The files that a bucket stores, as the database names them. */
async function mediaList(url: string): Promise<unknown> {
  const db = openDatabase({ url }).for('background')
  try {
    const { rows } = await sql`select key, size, sha256 from media where state = 'kept'`.execute(db.kysely)
    return rows
  } finally {
    await db.close()
  }
}
