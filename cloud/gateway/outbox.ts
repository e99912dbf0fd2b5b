import { createHash } from 'node:crypto'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type { Queries, Tx } from '../platform/store/database.ts'

/** The outbox of a hub that has never said hello: what it must know will be in its first snapshot. */
export const NO_EPOCH = '0'.repeat(32)

/**
 * Adds an entry to a hub's outbox stream, in the caller's transaction, with the rows that it reports (design §4). The
 * hub's outbox row stays locked to the end of the transaction, so that sequence numbers have no gaps and a snapshot
 * (`adopt-outbox.ts`) is made either before the transaction or after it. Returns where the entry stands; null for a hub
 * that has never said hello.
 */
export async function enqueue(tx: Tx, hubId: number, entry: CloudEntry): Promise<OutboxPlace | null> {
  const outbox = await tx.q
    .insertInto('hub_outboxes')
    .values({ hub_id: hubId, epoch: NO_EPOCH, base: 0, base_tag: 0, last: 0 })
    .onConflict((conflict) =>
      conflict.column('hub_id').doUpdateSet((eb) => ({
        last: eb
          .case()
          .when('hub_outboxes.epoch', '=', NO_EPOCH)
          .then(eb.ref('hub_outboxes.last'))
          .else(eb('hub_outboxes.last', '+', 1))
          .end(),
      })),
    )
    .returning(['epoch', 'base', 'base_tag', 'last'])
    .executeTakeFirstOrThrow()
  if (outbox.epoch === NO_EPOCH) return null
  const { epoch, base, base_tag: baseTag, last: seq } = outbox
  const previousTag = seq - 1 === base ? baseTag : await tagAt(tx.q, hubId, epoch, seq - 1)
  await insertEntry(tx, { hubId, epoch, seq, previousTag }, entry)
  tx.wake(hubId)
  return { epoch, seq }
}

/** Where an entry stands in a hub's outbox. */
export interface OutboxPlace {
  epoch: string
  seq: number
}

export interface EntryPlace {
  hubId: number
  epoch: string
  seq: number
  previousTag: number
}

/** Writes one entry at its place in the stream. */
export async function insertEntry(tx: Tx, place: EntryPlace, entry: CloudEntry): Promise<void> {
  const body = JSON.stringify(entry)
  await tx.q
    .insertInto('hub_outbox_entries')
    .values({
      hub_id: place.hubId,
      epoch: place.epoch,
      seq: place.seq,
      tag: chainTag(place.previousTag, body),
      body,
    })
    .execute()
}

/**
 * The tag of an entry: a digest of its body and of the tag before it, so that two histories that differ anywhere have
 * different tags from there on (`protocol/stream/receiver.ts` on forks).
 */
export function chainTag(previousTag: number, body: string): number {
  return createHash('sha256').update(`${previousTag}:${body}`).digest().readUInt32BE(0)
}

async function tagAt(q: Queries, hubId: number, epoch: string, seq: number): Promise<number> {
  const { tag } = await q
    .selectFrom('hub_outbox_entries')
    .select('tag')
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '=', seq)
    .executeTakeFirstOrThrow()
  return tag
}
