import type { ReceiverPosition, SenderPosition, Welcome } from '../../protocol/mqtt/session.ts'
import type { Tx } from '../platform/store/database.ts'

type StreamName = 'ledger' | 'telemetry'

interface StreamRow {
  epoch: string
  cursor: number
  tag: number
  is_current: 0 | 1
}

const NEVER: ReceiverPosition = { epoch: null, cursor: 0, tag: 0 }

/**
 * Decides on the hub's ledger stream at hello, in its transaction (SPEC §4). A hello that was overtaken by batches sent
 * after it seems not to fit either: a hub that finds the cloud's position in its own history does not restart.
 */
export async function adoptLedger(
  tx: Tx,
  hubId: number,
  theirs: SenderPosition,
  now: number,
): Promise<Welcome['ledger']> {
  const rows = await streamRows(tx, hubId, 'ledger')
  const current = rows.find((row) => row.is_current === 1)
  const position = current ? positionOf(current) : NEVER
  if (current?.epoch === theirs.epoch) return { ...position, restart: !fits(current, theirs) }
  const known = rows.some((row) => row.epoch === theirs.epoch)
  if (known || theirs.base > 0) return { ...position, restart: true }
  return { ...(await beginEpoch(tx, hubId, 'ledger', theirs, now)), restart: false }
}

/** The same for telemetry, which is lossy: where its cursor does not fit it moves to where the hub stands. */
export async function adoptTelemetry(
  tx: Tx,
  hubId: number,
  theirs: SenderPosition,
  now: number,
): Promise<ReceiverPosition> {
  const rows = await streamRows(tx, hubId, 'telemetry')
  const known = rows.find((row) => row.epoch === theirs.epoch)
  if (known?.is_current === 1 && fits(known, theirs)) return positionOf(known)
  if (!known) return beginEpoch(tx, hubId, 'telemetry', theirs, now)
  await leaveEpoch(tx, hubId, 'telemetry')
  await tx.q
    .updateTable('hub_streams')
    .set({ is_current: 1, cursor: theirs.base, tag: theirs.baseTag })
    .where('hub_id', '=', hubId)
    .where('stream', '=', 'telemetry')
    .where('epoch', '=', theirs.epoch)
    .execute()
  return { epoch: theirs.epoch, cursor: theirs.base, tag: theirs.baseTag }
}

/** Whether a sender that stands so can go on behind what was applied here. */
function fits({ cursor, tag }: StreamRow, { base, baseTag, last }: SenderPosition): boolean {
  if (cursor < base || cursor > last) return false
  return cursor > base || tag === baseTag
}

const positionOf = ({ epoch, cursor, tag }: StreamRow): ReceiverPosition => ({ epoch, cursor, tag })

async function streamRows(tx: Tx, hubId: number, stream: StreamName): Promise<StreamRow[]> {
  return tx
    .forUpdate(
      tx.q
        .selectFrom('hub_streams')
        .select(['epoch', 'cursor', 'tag', 'is_current'])
        .where('hub_id', '=', hubId)
        .where('stream', '=', stream),
    )
    .execute()
}

async function leaveEpoch(tx: Tx, hubId: number, stream: StreamName): Promise<void> {
  await tx.q
    .updateTable('hub_streams')
    .set({ is_current: 0 })
    .where('hub_id', '=', hubId)
    .where('stream', '=', stream)
    .where('is_current', '=', 1)
    .execute()
}

/** A new epoch: the rows of the old one stay (design §4). */
async function beginEpoch(
  tx: Tx,
  hubId: number,
  stream: StreamName,
  { epoch, base, baseTag }: SenderPosition,
  now: number,
): Promise<ReceiverPosition> {
  await leaveEpoch(tx, hubId, stream)
  const row = { epoch, cursor: base, tag: baseTag }
  await tx.q
    .insertInto('hub_streams')
    .values({ hub_id: hubId, stream, ...row, is_current: 1, created_at: now })
    .execute()
  return row
}
