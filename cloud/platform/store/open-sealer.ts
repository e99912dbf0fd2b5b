import { hkdfSync } from 'node:crypto'
import { randomHex } from '../../../protocol/model/ids.ts'
import type { Random } from '../../../protocol/model/runtime.ts'
import { UsageError } from '../settings/usage-error.ts'
import { isUniqueViolation, type CloudDatabase, type Queries, type Tx } from './database.ts'
import { decrypt, encrypt, createSealer, type Sealer } from './sealer.ts'

const keyOf = (secret: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', 'larder store', 32))
const idOf = (secret: string): string =>
  Buffer.from(hkdfSync('sha256', secret, '', 'larder store id', 8)).toString('hex')

/**
 * The sealer of a database. A random inner secret seals all values. The database stores it once per secret of
 * `STORE_SECRET`, encrypted with that secret. To rotate, put a new secret in front of the former one: no value is
 * sealed again, and processes with the former setting continue. A start without the former secret ends the rotation.
 * Throws a `UsageError` if no given secret opens the database.
 */
export async function openSealer(
  db: CloudDatabase,
  secrets: readonly string[],
  random: Random,
): Promise<Sealer> {
  for (let attempt = 1; ; attempt += 1)
    try {
      return createSealer(await db.transact((tx) => innerSecret(tx, secrets, random)), random)
    } catch (error) {
      // Another process has initialized the empty database first.
      if (attempt === 3 || !isUniqueViolation(error)) throw error
    }
}

/** Whether one of the secrets opens the database; undefined if no service has used the database yet. Changes nothing. */
export async function opensStore(q: Queries, secrets: readonly string[]): Promise<boolean | undefined> {
  const rows = await q.selectFrom('store_seals').select('key_id').execute()
  return rows.length === 0 ? undefined : rows.some(({ key_id }) => secrets.map(idOf).includes(key_id))
}

async function innerSecret(tx: Tx, secrets: readonly string[], random: Random): Promise<string> {
  const rows = await tx.forUpdate(tx.q.selectFrom('store_seals').selectAll().orderBy('number')).execute()
  const inner = rows.length === 0 ? randomHex(random, 32) : opened(rows, secrets)
  if (inner === undefined)
    throw new UsageError(
      'STORE_SECRET: the database was sealed with another secret. Set the one that all processes had; for a rotation set the new secret, a comma and the former one.',
    )
  const missing = secrets.filter((secret) => !rows.some(({ key_id }) => key_id === idOf(secret)))
  const last = rows.at(-1)?.number ?? 0
  for (const [index, secret] of missing.entries())
    await tx.q
      .insertInto('store_seals')
      .values({
        number: last + 1 + index,
        key_id: idOf(secret),
        sealed: encrypt(keyOf(secret), inner, random),
      })
      .execute()
  await tx.q.deleteFrom('store_seals').where('key_id', 'not in', secrets.map(idOf)).execute()
  return inner
}

function opened(
  rows: readonly { key_id: string; sealed: string }[],
  secrets: readonly string[],
): string | undefined {
  for (const secret of secrets) {
    const row = rows.find(({ key_id }) => key_id === idOf(secret))
    if (row) return decrypt(keyOf(secret), row.sealed)
  }
  return undefined
}
