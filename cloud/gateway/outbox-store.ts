import type { SenderPosition } from '../../protocol/mqtt/session.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import { NO_EPOCH } from './outbox.ts'

/** Where a hub's outbox stands; `undefined` before its first hello. */
export async function readPosition(q: Queries, hubId: number): Promise<SenderPosition | undefined> {
  const row = await q
    .selectFrom('hub_outboxes')
    .select(['epoch', 'base', 'base_tag', 'last'])
    .where('hub_id', '=', hubId)
    .executeTakeFirst()
  if (!row || row.epoch === NO_EPOCH) return undefined
  return { epoch: row.epoch, base: row.base, baseTag: row.base_tag, last: row.last }
}

/** The hubs whose outboxes hold something that is not acknowledged. */
export async function waitingHubs(q: Queries): Promise<number[]> {
  const rows = await q.selectFrom('hub_outboxes').select('hub_id').whereRef('base', '<', 'last').execute()
  return rows.map((row) => row.hub_id)
}

/**
 * Whether a position that a hub's inbox names lies in this outbox's history, as far as tags can tell: what was forgotten
 * was compared before it was.
 */
export async function isOurHistory(
  q: Queries,
  hubId: number,
  { epoch, cursor, tag }: { epoch: string | null; cursor: number; tag: number },
): Promise<boolean> {
  const position = await readPosition(q, hubId)
  if (position?.epoch !== epoch || cursor > position.last) return false
  if (cursor <= position.base) return cursor < position.base || tag === position.baseTag
  const entry = await q
    .selectFrom('hub_outbox_entries')
    .select('tag')
    .where('hub_id', '=', hubId)
    .where('epoch', '=', position.epoch)
    .where('seq', '=', cursor)
    .executeTakeFirst()
  return entry?.tag === tag
}

export interface OutboxEntries {
  base: number
  entries: { seq: number; tag: number; body: string }[]
  /** The tag of the entry before the first; `undefined` where the entries asked for are gone. */
  previousTag: number | undefined
}

/** Reads up to `count` entries from `first` on, without gaps, and the tag before them. */
export async function readEntries(
  q: Queries,
  hubId: number,
  epoch: string,
  first: number,
  count: number,
): Promise<OutboxEntries> {
  const rows = await q
    .selectFrom('hub_outbox_entries')
    .select(['seq', 'tag', 'body'])
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '>=', first - 1)
    .where('seq', '<', first + count)
    .orderBy('seq')
    .execute()
  const position = await readPosition(q, hubId)
  const gone: OutboxEntries = { base: position?.base ?? 0, entries: [], previousTag: undefined }
  if (position?.epoch !== epoch) return gone
  const before = rows[0]?.seq === first - 1 ? rows.shift() : undefined
  const previousTag = before?.tag ?? (position.base === first - 1 ? position.baseTag : undefined)
  if (rows[0]?.seq !== first || previousTag === undefined) return gone
  return { base: position.base, entries: rows, previousTag }
}

/** The hub has committed everything through `through`: moves the base there and deletes the entries (I4). */
export async function forgetEntries(tx: Tx, hubId: number, epoch: string, through: number): Promise<void> {
  const entry = await tx.q
    .selectFrom('hub_outbox_entries')
    .select('tag')
    .where('hub_id', '=', hubId)
    .where('epoch', '=', epoch)
    .where('seq', '=', through)
    .executeTakeFirst()
  // Gone already: another process heard the same acknowledgement.
  if (!entry) return
  await tx.q
    .updateTable('hub_outboxes')
    .set({ base: through, base_tag: entry.tag })
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
