import { createHash } from 'node:crypto'
import { sql } from 'kysely'
import { randomHex } from '../../protocol/model/ids.ts'
import { holdsWithin, type Random } from '../../protocol/model/runtime.ts'
import type { CloudEntry } from '../../protocol/mqtt/cloud-entries.ts'
import type { ReceiverPosition, SenderPosition } from '../../protocol/mqtt/session.ts'
import { isOurs } from '../../protocol/stream/sender.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { recordset } from '../platform/store/recordset.ts'
import { statement } from '../platform/store/statement.ts'
import { maySpeak } from './draining.ts'

/** The position of an entry in a hub's outbox. */
export interface OutboxPlace {
  epoch: string
  seq: number
}

/** The epoch of a hub that has never sent a hello: its first snapshot will contain everything. */
const NO_EPOCH = '0'.repeat(32)

/**
 * Adds an entry to a hub's outbox stream, in the caller's transaction, together with the rows that it reports (SPEC
 * §5). The hub's outbox row stays locked until the end of the transaction. So sequence numbers have no gaps, and
 * `reconcileOutboxes` builds a snapshot either before the transaction or after it. Returns the entry's position; null
 * for a hub that has never sent a hello.
 */
export async function enqueue(tx: Tx, hubId: number, entry: CloudEntry): Promise<OutboxPlace | null> {
  const { epoch, base, baseTag, last: seq, entryTag } = await lockNext(tx, hubId)
  if (epoch === NO_EPOCH) return null
  // A statement that waited for the lock does not see the entry that was committed meanwhile.
  const previousTag =
    seq - 1 === base ? baseTag : (entryTag ?? (await tagOf(tx.q, hubId, { epoch, seq: seq - 1 })))
  if (previousTag === undefined) throw new Error(`the outbox of hub ${hubId} lacks entry ${seq - 1}`)
  // On PostgreSQL the commit and the end of a savepoint wait for the row, the caller does not. SQLite continues after a
  // statement that failed.
  const inserted = insertEntry(tx, hubId, { epoch, seq }, previousTag, entry)
  if (tx.kind === 'sqlite') await inserted
  inserted.catch(() => {})
  tx.beforeCommit(`outbox entry ${hubId} ${seq}`, () => inserted)
  tx.wake(hubId)
  return { epoch, seq }
}

/** A hub that has sent a hello. */
export interface OutboxClaim {
  hubId: number
  /** The position of its inbox. */
  inbox: ReceiverPosition
  /** The hub has sent a hello before in this session. */
  isRepeated: boolean
}

export interface OutboxReconciliation {
  random: Random
  /** Builds the snapshot that begins an epoch, from the data that the transaction sees. */
  snapshot: (hubId: number) => Promise<CloudEntry>
  /** A hub has applied entries of the outbox's epoch that the outbox does not contain: the database was restored. */
  onFork: () => Promise<void>
}

/**
 * Decides at hellos whether outboxes continue at the hubs' inboxes or begin a new epoch with a snapshot (SPEC §4).
 * Locks the outboxes' rows first, so that later commits are queued behind the snapshot. Hubs come in the order of their
 * ids.
 */
export async function reconcileOutboxes(
  tx: Tx,
  hubs: readonly OutboxClaim[],
  { random, snapshot, onFork }: OutboxReconciliation,
): Promise<Map<number, SenderPosition>> {
  const outboxes = await lockOutboxes(
    tx,
    hubs.map(({ hubId }) => hubId),
  )
  const ahead = hubs.filter(({ hubId, inbox }) => {
    const { epoch, base } = outboxes.get(hubId)!
    return inbox.epoch === epoch && inbox.cursor > base
  })
  const tags = await tagsOf(tx, ahead)
  let isForked = false
  for (const { hubId, inbox, isRepeated } of hubs) {
    const ours = outboxes.get(hubId)!
    // An acknowledgement of the same session may have overtaken a repeated hello.
    const isBehind = inbox.cursor < ours.base && !isRepeated
    const tag = inbox.cursor === ours.base ? ours.baseTag : tags.get(hubId)
    const isSame = inbox.epoch === ours.epoch && ours.epoch !== NO_EPOCH
    if (!isBehind && isSame && isOurs(inbox, ours, () => tag)) continue
    if (isSame && inbox.cursor >= ours.base) isForked = true
    const fresh = { epoch: randomHex(random, 16), base: 0, baseTag: 0, last: 1 }
    outboxes.set(hubId, fresh)
    // A hub that has never sent a hello has no entries.
    if (ours.epoch !== NO_EPOCH)
      await tx.q.deleteFrom('hub_outbox_entries').where('hub_id', '=', hubId).execute()
    await insertEntry(tx, hubId, { epoch: fresh.epoch, seq: 1 }, 0, await snapshot(hubId))
    await tx.q
      .updateTable('hub_outboxes')
      .set({ epoch: fresh.epoch, base: 0, base_tag: 0, last: 1 })
      .where('hub_id', '=', hubId)
      .execute()
  }
  if (isForked) await onFork()
  return outboxes
}

/** Locks hubs' outboxes, and creates missing ones. */
async function lockOutboxes(tx: Tx, hubIds: readonly number[]): Promise<Map<number, SenderPosition>> {
  const locked = await lockKnown(tx, hubIds)
  const others = hubIds.filter((hubId) => !locked.has(hubId))
  if (others.length === 0) return locked
  await tx.q
    .insertInto('hub_outboxes')
    .values(others.map((hub_id) => ({ hub_id, epoch: NO_EPOCH, base: 0, base_tag: 0, last: 0 })))
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  return new Map([...locked, ...(await lockKnown(tx, others))])
}

async function lockKnown(tx: Tx, hubIds: readonly number[]): Promise<Map<number, SenderPosition>> {
  const rows = await tx
    .forUpdate(
      tx.q
        .selectFrom('hub_outboxes')
        .select(['hub_id', 'epoch', 'base', 'base_tag as baseTag', 'last'])
        .where('hub_id', 'in', hubIds)
        .orderBy('hub_id'),
    )
    .execute()
  return new Map(rows.map(({ hub_id, ...position }) => [hub_id, position]))
}

/** The tags of the entries at hubs' inbox positions, if they are stored. */
async function tagsOf(tx: Tx, hubs: readonly OutboxClaim[]): Promise<Map<number, number>> {
  if (hubs.length === 0) return new Map()
  const source = recordset(
    tx.kind,
    { at_hub: 'int', at_epoch: 'text', at_seq: 'int' },
    hubs.map(({ hubId, inbox }) => ({ at_hub: hubId, at_epoch: inbox.epoch, at_seq: inbox.cursor })),
  )
  const { rows } = await sql<{ hub_id: number; tag: number }>`
    select hub_id, tag from ${source}
    join hub_outbox_entries on hub_id = at_hub and epoch = at_epoch and seq = at_seq
  `.execute(tx.q)
  return new Map(rows.map(({ hub_id, tag }) => [hub_id, tag]))
}

/**
 * Locks a hub's outbox, or creates it, and assigns the next number of its epoch. `entryTag`: the tag of the entry before,
 * if it was stored when the statement began.
 */
async function lockNext(tx: Tx, hubId: number): Promise<SenderPosition & { entryTag: number | null }> {
  const [row] = await nextOfOutbox(tx.q, { hubId })
  return row!
}

const nextOfOutbox = statement((q, { hubId }: { hubId: number }) =>
  q
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
    .returning((eb) => [
      'epoch',
      'base',
      'base_tag as baseTag',
      'last',
      eb
        .selectFrom('hub_outbox_entries as e')
        .select('e.tag')
        .whereRef('e.hub_id', '=', 'hub_outboxes.hub_id')
        .whereRef('e.epoch', '=', 'hub_outboxes.epoch')
        .where(sql<boolean>`e.seq = hub_outboxes.last - 1`)
        .as('entryTag'),
    ]),
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
 * The tag of an entry: a digest of its body and of the previous tag. Two histories that differ anywhere thus have
 * different tags from there on (`protocol/stream/receiver.ts` on forks).
 */
function chainTag(previousTag: number, body: string): number {
  return createHash('sha256').update(`${previousTag}:${body}`).digest().readUInt32BE(0)
}

const tagAt = statement((q, at: OutboxPlace & { hubId: number }) =>
  q
    .selectFrom('hub_outbox_entries')
    .select('tag')
    .where('hub_id', '=', at.hubId)
    .where('epoch', '=', at.epoch)
    .where('seq', '=', at.seq),
)

/** The tag of an entry; `undefined` if the entry is not stored. */
async function tagOf(q: Queries, hubId: number, place: OutboxPlace): Promise<number | undefined> {
  const [row] = await tagAt(q, { hubId, ...place })
  return row?.tag
}

const positionOf = (q: Queries, { hubId }: { hubId: number }) =>
  q
    .selectFrom('hub_outboxes')
    .select(['epoch', 'base', 'base_tag as baseTag', 'last'])
    .where('hub_id', '=', hubId)
    .where('epoch', '!=', NO_EPOCH)

const positionRow = statement((q, hub: { hubId: number }) => positionOf(q, hub))

/** The position of a hub's outbox; `undefined` before its first hello. */
export async function readPosition(q: Queries, hubId: number): Promise<SenderPosition | undefined> {
  const [position] = await positionRow(q, { hubId })
  return position
}

const sendablePosition = statement((q, hub: { hubId: number; now: number }) =>
  positionOf(q, hub)
    .innerJoin('hubs', 'hubs.id', 'hub_outboxes.hub_id')
    .where((eb) => maySpeak(eb, hub.now)),
)

/** The same; also `undefined` if the hub is retired or its board is revoked: it must receive nothing. */
export async function positionToSend(
  q: Queries,
  hub: { hubId: number; now: number },
): Promise<SenderPosition | undefined> {
  const [position] = await sendablePosition(q, hub)
  return position
}

/** The hubs whose outboxes contain unacknowledged entries. */
export async function waitingHubs(q: Queries): Promise<number[]> {
  const rows = await q.selectFrom('hub_outboxes').select('hub_id').whereRef('base', '<', 'last').execute()
  return rows.map((row) => row.hub_id)
}

/** The same, with the tag of one entry if it is stored. */
const positionWithTag = statement((q, at: { hubId: number; seq: number }) =>
  q
    .selectFrom('hub_outboxes')
    .leftJoin('hub_outbox_entries', (join) =>
      join
        .onRef('hub_outbox_entries.hub_id', '=', 'hub_outboxes.hub_id')
        .onRef('hub_outbox_entries.epoch', '=', 'hub_outboxes.epoch')
        .on('hub_outbox_entries.seq', '=', at.seq),
    )
    .select([
      'hub_outboxes.epoch',
      'hub_outboxes.base',
      'hub_outboxes.base_tag as baseTag',
      'hub_outboxes.last',
      'hub_outbox_entries.tag',
    ])
    .where('hub_outboxes.hub_id', '=', at.hubId)
    .where('hub_outboxes.epoch', '!=', NO_EPOCH),
)

/** Whether a position of a hub's inbox is in this outbox's history, as far as tags show (`isOurs`). */
export async function isOurHistory(q: Queries, hubId: number, theirs: ReceiverPosition): Promise<boolean> {
  const [ours] = await positionWithTag(q, { hubId, seq: theirs.cursor })
  if (ours?.epoch !== theirs.epoch) return false
  const tag = theirs.cursor === ours.base ? ours.baseTag : (ours.tag ?? undefined)
  return isOurs(theirs, ours, () => tag)
}

export interface OutboxEntries {
  base: number
  entries: { seq: number; tag: number; body: string }[]
  /** The tag of the entry before the first. */
  previousTag: number
}

/**
 * Reads up to `count` entries from `first` on, without gaps. `undefined` if the first of them is no longer stored, or if the hub
 * must receive nothing.
 */
export async function readEntries(
  q: Queries,
  hub: { hubId: number; now: number },
  epoch: string,
  first: number,
  count: number,
): Promise<OutboxEntries | undefined> {
  const entries = await q
    .selectFrom('hub_outbox_entries')
    .select(['seq', 'tag', 'body'])
    .where('hub_id', '=', hub.hubId)
    .where('epoch', '=', epoch)
    .where('seq', '>=', first - 1)
    .where('seq', '<', first + count)
    .orderBy('seq')
    .execute()
  const position = await positionToSend(q, hub)
  if (position?.epoch !== epoch) return undefined
  const { base, baseTag } = position
  const before = entries[0]?.seq === first - 1 ? entries.shift() : undefined
  const previousTag = before?.tag ?? (base === first - 1 ? baseTag : undefined)
  if (entries[0]?.seq !== first || previousTag === undefined) return undefined
  return { base, entries, previousTag }
}

/** The hub has committed everything up to `through`: moves the base there and deletes the entries (I4). */
export async function forgetEntries(tx: Tx, hubId: number, epoch: string, through: number): Promise<void> {
  const tag = await tagOf(tx.q, hubId, { epoch, seq: through })
  // Already deleted: another process received the same acknowledgement.
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
 * Waits until a hub has committed an entry of its outbox. False after `timeoutMs`. Under a newer epoch the first
 * snapshot contains the entry's effect. Polls the database, because another process may receive the acknowledgement.
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
