import type { Random } from '../../protocol/model/runtime.ts'
import { digestOf } from '../platform/credentials/secrets.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'

/** 32 letters and digits that differ clearly. A random byte gives five bits without bias. */
const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'
const LENGTH = 8

/** A claim code: a technician types it at the board, in any case. */
const newCode = (random: Random): string =>
  Array.from(random.bytes(LENGTH), (byte) => LETTERS[byte % LETTERS.length]).join('')

/** The digest of a code as a technician typed it. */
export const codeDigest = (typed: string): string => digestOf(typed.trim().toUpperCase())

/** Gives a hub a new claim code, which replaces the former one. Only its digest is stored. */
export async function renewClaimCode(
  tx: Tx,
  { runtime, settings }: Pick<CloudContext, 'runtime' | 'settings'>,
  hubId: number,
): Promise<{ code: string; expiresAt: number }> {
  const code = newCode(runtime.random)
  const expiresAt = runtime.clock.now() + settings.claimCodeMs
  await tx.q
    .updateTable('hubs')
    .set({ claim_code_digest: codeDigest(code), claim_expires_at: expiresAt })
    .where('id', '=', hubId)
    .execute()
  return { code, expiresAt }
}
