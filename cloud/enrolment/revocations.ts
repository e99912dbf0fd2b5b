import { join } from 'node:path'
import { z } from 'zod'
import { hubUser } from '../../protocol/mqtt/topics.ts'
import { appendAudit } from '../platform/audit/audit.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { storedList } from '../platform/stored-list.ts'
import { shutOut } from './enrol.ts'

/** A revoked certificate that has not expired. Times are milliseconds since the Unix epoch. */
const Revocation = z.object({
  serial: z.string(),
  hub_id: z.int(),
  /** The authority that signed it. */
  authority: z.int().default(1),
  issued_at: z.int(),
  expires_at: z.int(),
  revoked_at: z.int(),
  /** Whether its hub was shut out, and neither enrolled again nor given a new password. */
  is_shut_out: z.boolean(),
})
type Revocation = z.infer<typeof Revocation>

/**
 * Keeps the revocations in a file of this machine, beside the database. A restored database lacks the latest ones: they
 * are revoked again, so that a stolen board stays shut out. A backup does not contain the file.
 */
export async function keepRevocations(context: CloudContext, folder: string): Promise<void> {
  const { db, runtime, log } = context
  const file = storedList(join(folder, 'revoked-certificates.json'), Revocation)
  const now = runtime.clock.now()
  const revoked = new Set((await revocationsIn(db.kysely, now)).map(({ serial }) => serial))
  const lost = file.read().filter(({ serial, expires_at }) => expires_at > now && !revoked.has(serial))
  if (lost.length > 0) {
    const again = await db.transact((tx) => revokeAgain(tx, context, lost))
    if (again.length > 0) log.warn({ serials: again }, 'the database had lost revocations of certificates')
  }
  file.write(await revocationsIn(db.kysely, now))
}

async function revocationsIn(q: Queries, now: number): Promise<Revocation[]> {
  const rows = await q
    .selectFrom('hub_certificates')
    .innerJoin('hubs', 'hubs.id', 'hub_certificates.hub_id')
    .select(['serial', 'hub_id', 'authority', 'issued_at', 'expires_at'])
    .select(['hub_certificates.revoked_at', 'hubs.revoked_at as shut_out_at'])
    .where('hub_certificates.revoked_at', 'is not', null)
    .where('expires_at', '>', now)
    .orderBy('serial')
    .execute()
  return rows.map(({ revoked_at, shut_out_at, ...row }) => ({
    ...row,
    revoked_at: revoked_at!,
    is_shut_out: shut_out_at === revoked_at,
  }))
}

/** Returns the serial numbers of hubs that exist. */
async function revokeAgain(
  tx: Tx,
  { runtime }: CloudContext,
  lost: readonly Revocation[],
): Promise<string[]> {
  const again: string[] = []
  for (const { is_shut_out, ...row } of lost) {
    const { hub_id: hubId, serial, issued_at, revoked_at } = row
    // A restored database gives the number of a lost hub to another one.
    const hub = tx.q
      .selectFrom('hubs')
      .select('id')
      .where('id', '=', hubId)
      .where('created_at', '<=', issued_at)
    if (!(await tx.forUpdate(hub).executeTakeFirst())) continue
    await tx.q
      .insertInto('hub_certificates')
      .values(row)
      .onConflict((conflict) => conflict.column('serial').doUpdateSet({ revoked_at }))
      .execute()
    if (is_shut_out) await shutOut(tx, runtime.random, hubId, revoked_at)
    const act = { actor: 'cloud', action: 'hubs.revoke', hubId, object: hubUser(hubId), result: 'executed' }
    await appendAudit(tx.q, runtime, { ...act, detail: { revoked: [serial], reason: 'restored database' } })
    again.push(serial)
  }
  return again
}
