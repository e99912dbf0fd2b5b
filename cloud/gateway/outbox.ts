import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { randomHex } from '../../protocol/model/ids.ts'
import { holdsWithin, type Random } from '../../protocol/model/runtime.ts'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type { ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import { isOurs } from '../../protocol/stream/sender.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

/** Where an entry stands in a hub's outbox. */
export interface OutboxPlace {
  epoch: string
  seq: number
}

/** The outbox of a hub that has never said hello: what it must know will be in its first snapshot. */
const NO_EPOCH = '0'.repeat(32)

/**
 * Adds an entry to a hub's outbox stream, in the caller's transaction, with the rows that it reports (SPEC §5). The
 * hub's outbox row stays locked to the end of the transaction, so that sequence numbers have no gaps and a snapshot
 * (`reconcileOutbox`) is made either before the transaction or after it. Returns where the entry stands; null for a hub
 * that has never said hello.
 */
export async function enqueue(tx: Tx, hubId: number, entry: CloudEntry): Promise<OutboxPlace | null> {
  const [{ epoch, base, baseTag, last: seq }, [previous]] = await Promise.all([
    lockOutbox(tx, hubId, 1),
    entryBefore(tx.q, { hubId }),
  ])
  if (epoch === NO_EPOCH) return null
  const previousTag = seq - 1 === base ? baseTag : previous?.tag
  if (previousTag === undefined) throw new Error(`the outbox of hub ${hubId} lacks entry ${seq - 1}`)
  await insertEntry(tx, hubId, { epoch, seq }, previousTag, entry)
  tx.wake(hubId)
  return { epoch, seq }
}

/** The tag of the entry before the number that was given out last. */
const entryBefore = statement((q, { hubId }: { hubId: number }) =>
  q
    .selectFrom('hub_outboxes as o')
    .innerJoin('hub_outbox_entries as e', (join) =>
      join
        .onRef('e.hub_id', '=', 'o.hub_id')
        .onRef('e.epoch', '=', 'o.epoch')
        .on(sql<boolean>`e.seq = o.last - 1`),
    )
    .select('e.tag')
    .where('o.hub_id', '=', hubId),
)

export interface OutboxReconciliation {
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
export async function reconcileOutbox(
  tx: Tx,
  hubId: number,
  theirs: ReceiverPosition,
  { isRepeated, random, snapshot }: OutboxReconciliation,
): Promise<SenderPosition> {
  const ours = await lockOutbox(tx, hubId, 0)
  // A repeated hello may have been overtaken by an acknowledgement of its own session.
  const isBehind = theirs.cursor < ours.base && !isRepeated
  if (!isBehind && (await isOurHistory(tx.q, hubId, theirs))) return ours
  const fresh = { epoch: randomHex(random, 16), base: 0, baseTag: 0, last: 1 }
  await tx.q.deleteFrom('hub_outbox_entries').where('hub_id', '=', hubId).execute()
  await insertEntry(tx, hubId, { epoch: fresh.epoch, seq: 1 }, 0, await snapshot())
  await tx.q
    .updateTable('hub_outboxes')
    .set({ epoch: fresh.epoch, base: 0, base_tag: 0, last: 1 })
    .where('hub_id', '=', hubId)
    .execute()
  return fresh
}

/** Locks a hub's outbox, which it creates where there is none, and gives out the next `added` numbers of its epoch. */
async function lockOutbox(tx: Tx, hubId: number, added: 0 | 1): Promise<SenderPosition> {
  const [row] = await addToOutbox(tx.q, { hubId, added })
  return row!
}

const addToOutbox = statement((q, { hubId, added }: { hubId: number; added: 0 | 1 }) =>
  q
    .insertInto('hub_outboxes')
    .values({ hub_id: hubId, epoch: NO_EPOCH, base: 0, base_tag: 0, last: 0 })
    .onConflict((conflict) =>
      conflict.column('hub_id').doUpdateSet((eb) => ({
        last: eb
          .case()
          .when('hub_outboxes.epoch', '=', NO_EPOCH)
          .then(eb.ref('hub_outboxes.last'))
          .else(eb('hub_outboxes.last', '+', added))
          .end(),
      })),
    )
    .returning(['epoch', 'base', 'base_tag as baseTag', 'last']),
)

async function insertEntry(
  tx: Tx,
  hubId: number,
  place: OutboxPlace,
  previousTag: number,
  entry: CloudEntry,
): Promise<void> {
  const body = JSON.stringify(entry)
  await addEntry(tx.q, { hubId, ...place, tag: chainTag(previousTag, body), body })
}

const addEntry = statement((q, entry: OutboxPlace & { hubId: number; tag: number; body: string }) =>
  q.insertInto('hub_outbox_entries').values({
    hub_id: entry.hubId,
    epoch: entry.epoch,
    seq: entry.seq,
    tag: entry.tag,
    body: entry.body,
  }),
)

/**
 * The tag of an entry: a digest of its body and of the tag before it, so that two histories that differ anywhere have
 * different tags from there on (`protocol/stream/receiver.ts` on forks).
 */
function chainTag(previousTag: number, body: string): number {
  return createHash('sha256').update(`${previousTag}:${body}`).digest().readUInt32BE(0)
}

/** The tag of an entry; `undefined` where the entry is not stored, or no longer. */
async function tagOf(q: Queries, hubId: number, { epoch, seq }: OutboxPlace): Promise<number | undefined> {
  const [row] = await tagAt(q, { hubId, epoch, seq })
  return row?.tag
}

const tagAt = statement((q, { hubId, epoch, seq }: OutboxPlace & { hubId: number }) =>
  q
    .selectFrom('hub_outbox_entries')
    .select('tag')
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '=', seq),
)

/** Where a hub's outbox stands; `undefined` before its first hello. */
export async function readPosition(q: Queries, hubId: number): Promise<SenderPosition | undefined> {
  return q
    .selectFrom('hub_outboxes')
    .select(['epoch', 'base', 'base_tag as baseTag', 'last'])
    .where('hub_id', '=', hubId)
    .where('epoch', '!=', NO_EPOCH)
    .executeTakeFirst()
}

/** The hubs whose outboxes hold something that is not acknowledged. */
export async function waitingHubs(q: Queries): Promise<number[]> {
  const rows = await q.selectFrom('hub_outboxes').select('hub_id').whereRef('base', '<', 'last').execute()
  return rows.map((row) => row.hub_id)
}

/** Whether a position that a hub's inbox names lies in this outbox's history, as far as tags can tell (`isOurs`). */
export async function isOurHistory(q: Queries, hubId: number, theirs: ReceiverPosition): Promise<boolean> {
  const ours = await readPosition(q, hubId)
  if (ours?.epoch !== theirs.epoch) return false
  const { epoch, base, baseTag } = ours
  const tag = theirs.cursor === base ? baseTag : await tagOf(q, hubId, { epoch, seq: theirs.cursor })
  return isOurs(theirs, ours, () => tag)
}

export interface OutboxEntries {
  base: number
  entries: { seq: number; tag: number; body: string }[]
  /** The tag of the entry before the first. */
  previousTag: number
}

/** Reads up to `count` entries from `first` on, without gaps. `undefined` where the first of them is not stored any more. */
export async function readEntries(
  q: Queries,
  hubId: number,
  epoch: string,
  first: number,
  count: number,
): Promise<OutboxEntries | undefined> {
  const entries = await q
    .selectFrom('hub_outbox_entries')
    .select(['seq', 'tag', 'body'])
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '>=', first - 1)
    .where('seq', '<', first + count)
    .orderBy('seq')
    .execute()
  const position = await readPosition(q, hubId)
  if (position?.epoch !== epoch) return undefined
  const { base, baseTag } = position
  const before = entries[0]?.seq === first - 1 ? entries.shift() : undefined
  const previousTag = before?.tag ?? (base === first - 1 ? baseTag : undefined)
  if (entries[0]?.seq !== first || previousTag === undefined) return undefined
  return { base, entries, previousTag }
}

/** The hub has committed everything through `through`: moves the base there and deletes the entries (I4). */
export async function forgetEntries(tx: Tx, hubId: number, epoch: string, through: number): Promise<void> {
  const tag = await tagOf(tx.q, hubId, { epoch, seq: through })
  // Gone already: another process heard the same acknowledgement.
  if (tag === undefined) return
  await tx.q
    .updateTable('hub_outboxes')
    .set({ base: through, base_tag: tag })
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('base', '<', through)
    .execute()
  await tx.q
    .deleteFrom('hub_outbox_entries')
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '<=', through)
    .execute()
}

/**
 * Waits until a hub has committed an entry of its outbox. False where that takes longer than `timeoutMs`. Under a newer
 * epoch what the entry said is in the snapshot that begins it. Looks into the database, as the acknowledgement may come to
 * another process.
 */
export async function awaitDelivery(
  { db, runtime }: CloudContext,
  hubId: number,
  { epoch, seq }: OutboxPlace,
  timeoutMs: number,
): Promise<boolean> {
  return holdsWithin(runtime.clock, timeoutMs, async () => {
    const position = await readPosition(db.kysely, hubId)
    return position !== undefined && position.base >= (position.epoch === epoch ? seq : 1)
  })
}
