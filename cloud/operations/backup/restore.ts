import { createReadStream, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import * as files from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolder } from '../../../protocol/model/make-folder.ts'
import { noteRestored } from '../../commerce/orders/restored.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import { openMediaStore } from '../../platform/media/open-store.ts'
import { managementKeyOf } from '../../platform/settings/config.ts'
import { openDatabase, type CloudDatabase, type Tx } from '../../platform/store/database.ts'
import { openSealer } from '../../platform/store/sealer.ts'
import { databaseFile, unpack, type Manifest } from './archive.ts'
import { backupDatabase, kindOf } from './databases.ts'
import { inDraft, secretsOf, storedSecret, type Installation } from './place.ts'
import { fetchBackup } from './target.ts'
import { countAbsent, schemaProblem } from './verify.ts'
import { sandboxTables } from '../../platform/store/tables/processors.ts'

export interface Restored {
  file: string
  restored_at: string
  created_at: string
  version: string
  schema_version: string
  /** Files that the database names and the media store lacks. */
  missing_media: number
}

export interface RestoreOptions {
  file: string
  /** Replaces a database with rows. */
  force: boolean
  actor: string
  contextOf: (db: CloudDatabase) => CloudContext
  /** Receives sentences for the operator. */
  say: (sentence: string) => void
}

/**
 * Restores a backup: database, secrets, media. Secrets and files that are present stay. Raises `database_restored`, so that
 * the next start reports the period whose sales are missing.
 */
export function restoreBackup(installation: Installation, options: RestoreOptions): Promise<Restored> {
  const { databaseUrl, credentials, passphrase, settings, runtime } = installation
  const { file, force, say } = options
  return inDraft(installation, async (draft) => {
    const { path } = await fetchBackup(file, credentials, draft)
    const manifest = await unpack(path, draft, passphrase)
    refuse(manifest, databaseUrl)
    const at = (name: string): string => join(draft, name)
    if (databaseUrl.startsWith('sqlite:')) makeFolder(files, dirname(databaseUrl.slice('sqlite:'.length)))
    // A database of another build has no books that this one can read.
    const putSandbox = await readSandboxBooks(databaseUrl).catch(() => undefined)
    await backupDatabase(databaseUrl).replaceBy(at(databaseFile(manifest.database)), force)
    const before = secretsOf(settings)
    putSecrets(installation, at('secrets'))
    const db = openDatabase({ url: databaseUrl }).for('background')
    try {
      await db.migrate()
      // Both the present secret of this installation and the backup's secret open the database afterwards.
      const both = [before.get('store-secret'), storedSecret(at('secrets'))].filter(
        (one) => one !== undefined,
      )
      if (both.length > 0) await openSealer(db, [...new Set(both)], runtime.random)
      await putSandbox?.(db)
      const missing_media = await putMedia(installation, db, at('media'))
      const restored_at = timestamp(runtime.clock.now())
      const { created_at, version, schema_version } = manifest
      await recordRestore(db, options, { file, created_at, restored_at })
      const config = join(settings.DATA_DIR, 'restored-cloud.json')
      writeFileSync(config, readFileSync(at('cloud.json')), { mode: 0o600 })
      say(
        `The settings of the backup are in ${config}. Compare them with the present ones, then delete the file.`,
      )
      return { file, restored_at, created_at, version, schema_version, missing_media }
    } finally {
      await db.close()
    }
  })
}

function refuse(manifest: Manifest, databaseUrl: string): void {
  const { database } = manifest
  if (database !== kindOf(databaseUrl))
    throw new Error(`the backup contains a ${database} database: set DATABASE_URL to one of that kind`)
  const problem = schemaProblem(manifest)
  if (problem !== undefined) throw new Error(problem)
}

/** Stores the secrets that this installation lacks. */
function putSecrets({ settings }: Installation, folder: string): void {
  const present = secretsOf(settings)
  for (const name of readdirSync(folder).filter((each) => !present.has(each))) {
    const path = name === 'management-key' ? managementKeyOf(settings) : join(settings.DATA_DIR, name)
    writeFileSync(path, readFileSync(join(folder, name)), { mode: 0o600 })
  }
}

/** Stores the files that the database names and the store lacks. Returns the number that the backup lacks, too. */
function putMedia(
  { mediaUrl, credentials }: Installation,
  db: CloudDatabase,
  folder: string,
): Promise<number> {
  const store = openMediaStore(mediaUrl, credentials)
  return countAbsent(db, async (key, mimeType) => {
    const stored = await store.read(key, { first: 0, last: 0 })
    await stored?.cancel()
    if (stored !== null) return true
    if (!existsSync(join(folder, key))) return false
    await store.write(key, mimeType, createReadStream(join(folder, key)))
    return true
  })
}

/** Changes a restored database so that it starts. */
export function recordRestore(
  db: CloudDatabase,
  { contextOf, actor }: Pick<RestoreOptions, 'contextOf' | 'actor'>,
  detail: { file: string; created_at: string; restored_at: string },
): Promise<void> {
  const context = contextOf(db)
  return db.transact(async (tx) => {
    await noteRestored(tx, context, [], Date.parse(detail.created_at))
    // The next start finds the payments that the books lack.
    await tx.q
      .updateTable('due_work')
      .set({ due_at: context.runtime.clock.now() })
      .where('kind', '=', 'processor.check')
      .execute()
    // A code or an invitation of the backup may have been used since.
    await tx.q.deleteFrom('invitations').execute()
    await tx.q.updateTable('hubs').set({ claim_code_digest: null, claim_expires_at: null }).execute()
    await appendAudit(tx.q, context.runtime, {
      actor,
      action: 'backup.restore',
      hubId: null,
      object: 'database',
      result: 'executed',
      detail,
    })
  })
}

type Table = keyof typeof sandboxTables
const names = Object.keys(sandboxTables) as Table[]
const ROWS_AT_ONCE = 500

/**
 * Reads the sandbox processor's books before a restore. Returns a function that puts them into the restored database. They
 * represent another company: a restore does not undo its payments, as it does not undo those of a real processor.
 */
export async function readSandboxBooks(url: string): Promise<(db: CloudDatabase) => Promise<void>> {
  const db = openDatabase({ url }).for('background')
  try {
    if (await db.isEmpty()) return () => Promise.resolve()
    const books = await Promise.all(names.map((name) => db.kysely.selectFrom(name).selectAll().execute()))
    const work = await db.kysely
      .selectFrom('due_work')
      .selectAll()
      .where('kind', 'like', 'sandbox.%')
      .execute()
    return (restored) =>
      restored.transact(async (tx) => {
        for (const name of names.toReversed()) await tx.q.deleteFrom(name).execute()
        for (const [index, name] of names.entries()) await insert(tx, name, books[index]!)
        await tx.q.deleteFrom('due_work').where('kind', 'like', 'sandbox.%').execute()
        await insert(tx, 'due_work', work)
      })
  } finally {
    await db.close()
  }
}

async function insert(tx: Tx, table: Table | 'due_work', rows: readonly object[]): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE)
    await tx.q
      .insertInto(table)
      .values(rows.slice(first, first + ROWS_AT_ONCE))
      .execute()
}
