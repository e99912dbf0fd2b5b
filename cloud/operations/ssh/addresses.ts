import ssh2 from 'ssh2'
import { FINGERPRINT, fingerprintOf } from '../../../protocol/management/ssh.ts'
import type { Queries } from '../../platform/store/database.ts'

/** Address and host key of a hub's management service. An operator sets them; they are never learned. */
export interface ManagementAddress {
  host: string
  port: number
  /** `SHA256:…` */
  hostKey: string
}

export async function readAddress(q: Queries, hubId: number): Promise<ManagementAddress | undefined> {
  const row = await q
    .selectFrom('hub_management')
    .select(['host', 'port', 'host_key'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  return row && { host: row.host, port: row.port, hostKey: row.host_key }
}

export async function writeAddress(q: Queries, hubId: number, address: ManagementAddress): Promise<void> {
  const columns = { host: address.host, port: address.port, host_key: address.hostKey }
  await q
    .insertInto('hub_management')
    .values({ hub_id: hubId, ...columns })
    .onConflict((conflict) => conflict.column('hub_id').doUpdateSet(columns))
    .execute()
}

/** Returns false if there was none. */
export async function clearAddress(q: Queries, hubId: number): Promise<boolean> {
  const deleted = await q
    .deleteFrom('hub_management')
    .where('hub_id', '=', hubId)
    .returning('hub_id')
    .execute()
  return deleted.length > 0
}

/**
 * Parses a pin in either form that operators have: a fingerprint, or the public key itself. `undefined` for
 * anything else.
 */
export function parseHostKey(text: string): string | undefined {
  if (FINGERPRINT.test(text)) return text
  const key = ssh2.utils.parseKey(text.trim())
  return key instanceof Error || key.isPrivateKey() ? undefined : fingerprintOf(key.getPublicSSH())
}
