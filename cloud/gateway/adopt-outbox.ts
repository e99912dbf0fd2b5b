import { randomHex } from '../../protocol/model/ids.ts'
import type { Random } from '../../protocol/model/runtime.ts'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type { ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import type { Tx } from '../platform/store/database.ts'
import { isOurHistory } from './outbox-store.ts'
import { insertEntry, NO_EPOCH } from './outbox.ts'

export interface OutboxAdoption {
  /** The hub has said hello before in this session. */
  isRepeated: boolean
  random: Random
  /** Makes the snapshot that begins an epoch, from what the transaction sees. */
  snapshot: () => Promise<CloudEntry>
}

/**
 * Decides at hello whether the outbox goes on where the hub's inbox stands, or begins a new epoch with a snapshot
 * (SPEC §4). The outbox row is locked first: whatever commits later is queued behind the snapshot.
 */
export async function adoptOutbox(
  tx: Tx,
  hubId: number,
  theirs: ReceiverPosition,
  adoption: OutboxAdoption,
): Promise<SenderPosition> {
  const ours = await lockOutbox(tx, hubId)
  // A repeated hello may have been overtaken by an acknowledgement of its own session.
  const isBehind = theirs.cursor < ours.base && !adoption.isRepeated
  if (!isBehind && (await isOurHistory(tx.q, hubId, theirs))) return ours
  return beginEpoch(tx, hubId, adoption)
}

async function lockOutbox(tx: Tx, hubId: number): Promise<SenderPosition> {
  const row = await tx.q
    .insertInto('hub_outboxes')
    .values({ hub_id: hubId, epoch: NO_EPOCH, base: 0, base_tag: 0, last: 0 })
    .onConflict((conflict) =>
      conflict.column('hub_id').doUpdateSet((eb) => ({ last: eb.ref('hub_outboxes.last') })),
    )
    .returning(['epoch', 'base', 'base_tag', 'last'])
    .executeTakeFirstOrThrow()
  return { epoch: row.epoch, base: row.base, baseTag: row.base_tag, last: row.last }
}

async function beginEpoch(
  tx: Tx,
  hubId: number,
  { random, snapshot }: OutboxAdoption,
): Promise<SenderPosition> {
  const epoch = randomHex(random, 16)
  await tx.q.deleteFrom('hub_outbox_entries').where('hub_id', '=', hubId).execute()
  await insertEntry(tx, { hubId, epoch, seq: 1, previousTag: 0 }, await snapshot())
  await tx.q
    .updateTable('hub_outboxes')
    .set({ epoch, base: 0, base_tag: 0, last: 1 })
    .where('hub_id', '=', hubId)
    .execute()
  return { epoch, base: 0, baseTag: 0, last: 1 }
}
