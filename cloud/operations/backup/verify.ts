import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { sql } from 'kysely'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { openDatabase, type CloudDatabase } from '../../platform/store/database.ts'
import { expectedSchema, SCHEMA_VERSION } from '../../platform/store/migrate.ts'
import { openSealer } from '../../platform/store/sealer.ts'
import { databaseFile, unpack, type Manifest } from './archive.ts'
import { backupDatabase, kindOf } from './databases.ts'
import { inDraft, storedSecret, type Installation } from './place.ts'
import { fetchBackup } from './target.ts'

export interface BackupCheck {
  name: string
  ok: boolean
  message?: string
}

/** Counts the payments that these succeeded refunds exceed. */
const refundsAbove = (which: string): string => `select count(*) from payments p
    where (select coalesce(sum(amount), 0) from refunds r
        where r.payment_id = p.id and r.status = 'succeeded' and ${which})
      > case when p.status = 'completed' then p.amount else 0 end`

/** Counts the rows that break a rule of the books. */
const rules: Readonly<Record<string, string>> = {
  'each wallet and each account of points is the sum of its entries': `select count(*) from ledger_accounts a
    where balance <> (select coalesce(sum(amount), 0) from ledger_entries e
        where e.user_id = a.user_id and e.account = a.account and e.position is not null)
      or entries <> (select count(*) from ledger_entries e
        where e.user_id = a.user_id and e.account = a.account and e.position is not null)`,
  'each posted entry belongs to an account': `select count(*) from ledger_entries e
    where position is not null and not exists (
      select 1 from ledger_accounts a where a.user_id = e.user_id and a.account = e.account)`,
  'refunds at the processor are at most their payment': refundsAbove('r.settles is null'),
  // A bank may take the money of a payment whose customer a person has paid in another way.
  'refunds by people and by the service are at most their payment': refundsAbove(
    "r.reason not in ('processor', 'dispute')",
  ),
  'each order at a hub has a completed payment of its total': `select count(*) from orders o
    where processing_status between ${OrderStatus.QUEUED} and ${OrderStatus.COLLECTING} and not exists (
      select 1 from payments p
      where p.order_id = o.id and p.status = 'completed' and p.is_late = 0 and p.amount = o.total)`,
  'each frozen order is the sum of its lines': `select count(*) from orders o
    where total is not null and processing_status >= ${OrderStatus.QUEUED}
      and total <> (select coalesce(sum(net + tax), 0) from order_items i where i.order_id = o.id)`,
  'each order names a present customer': `select count(*) from orders o
    where not exists (select 1 from users u where u.id = o.user_id)`,
}

/** Why this software cannot use the schema of a backup; undefined if it can. */
export function schemaProblem({ schema_version, schema, version, database }: Manifest): string | undefined {
  if (schema_version > SCHEMA_VERSION)
    return `its schema is ${schema_version}, this software knows ${SCHEMA_VERSION}: install version ${version} or a later one`
  if (schema_version === SCHEMA_VERSION && schema !== expectedSchema(database).declared)
    return `version ${version} made its tables, and this software has other tables: install version ${version}`
  return undefined
}

/** Unpacks a backup, restores its database into a scratch database, and checks its books there. */
export function verifyBackup(
  installation: Installation,
  file: string,
): Promise<{ file: string; ok: boolean; checks: BackupCheck[] }> {
  const { credentials, passphrase } = installation
  return inDraft(installation, async (draft) => {
    const checks: BackupCheck[] = []
    const check = async <T>(name: string, work: () => Promise<T>): Promise<T | undefined> => {
      try {
        const value = await work()
        checks.push({ name, ok: true })
        return value
      } catch (error) {
        checks.push({ name, ok: false, message: error instanceof Error ? error.message : String(error) })
        return undefined
      }
    }
    const result = () => ({ file, ok: checks.every(({ ok }) => ok), checks })
    const { path, record } = await fetchBackup(file, credentials, draft)
    if (record) await check('checksum', () => compareSum(path, record.sha256))
    const manifest = await check('archive', () => unpack(path, draft, passphrase))
    if (!manifest) return result()
    await check('schema', () => {
      const problem = schemaProblem(manifest)
      return problem === undefined ? Promise.resolve() : Promise.reject(new Error(problem))
    })
    if (result().ok) await check('database', () => checkDatabase(installation, draft, manifest, check))
    return result()
  })
}

async function compareSum(path: string, expected: string): Promise<void> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  const found = hash.digest('hex')
  if (found !== expected) throw new Error(`the file has SHA-256 ${found}, it was made with ${expected}`)
}

type RunCheck = (name: string, work: () => Promise<unknown>) => Promise<unknown>

async function checkDatabase(
  { databaseUrl, runtime }: Installation,
  draft: string,
  { database, media }: Manifest,
  check: RunCheck,
): Promise<void> {
  if (database === 'postgres' && kindOf(databaseUrl) !== 'postgres')
    throw new Error('DATABASE_URL must name a PostgreSQL server, which gets a scratch database for the check')
  const url = database === 'sqlite' ? 'sqlite:' : databaseUrl
  const at = (name: string): string => join(draft, name)
  await backupDatabase(url).scratch(at(databaseFile(database)), runtime.random, async (place) => {
    const db = openDatabase({ url: place }).for('background')
    try {
      await intact(db)
      await db.migrate()
      for (const [name, query] of Object.entries(rules)) await check(name, () => expectNone(db, query))
      const secret = storedSecret(at('secrets'))
      if (secret !== undefined)
        await check('the secret of the backup opens its database', () =>
          openSealer(db, [secret], runtime.random),
        )
      if (media === 'included')
        await check('every file that the database names is there', async () => {
          const absent = await countAbsent(db, (key) => Promise.resolve(existsSync(at(`media/${key}`))))
          if (absent > 0) throw new Error(`${absent} files are missing`)
        })
    } finally {
      await db.close()
    }
  })
}

/** Throws if SQLite finds damaged pages, or rows that refer to absent rows. PostgreSQL checks both at the restore. */
async function intact({ kysely, kind }: CloudDatabase): Promise<void> {
  if (kind !== 'sqlite') return
  const { rows } = await sql<{
    found: string
  }>`select integrity_check as found from pragma_integrity_check`.execute(kysely)
  if (rows[0]?.found !== 'ok') throw new Error(`the database is damaged: ${rows[0]?.found}`)
  const broken = await sql`select * from pragma_foreign_key_check limit 1`.execute(kysely)
  if (broken.rows.length > 0)
    throw new Error(`a row refers to an absent row: ${JSON.stringify(broken.rows[0])}`)
}

async function expectNone({ kysely }: CloudDatabase, query: string): Promise<void> {
  const { rows } = await sql.raw<Record<string, number | string>>(query).execute(kysely)
  const count = Number(Object.values(rows[0]!)[0])
  if (count > 0) throw new Error(`${count} rows break this rule`)
}

/** The number of files that the database names and that are absent. */
export async function countAbsent(
  { kysely }: CloudDatabase,
  exists: (key: string, mimeType: string) => Promise<boolean>,
): Promise<number> {
  const rows = await kysely.selectFrom('media').selectAll().where('state', '=', 'kept').execute()
  let absent = 0
  for (const { key, mime_type: type } of rows) if (!(await exists(key, type))) absent += 1
  return absent
}
