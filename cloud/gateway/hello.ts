import type { Hello, ReceiverPosition, SenderPosition, Welcome } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { Tx } from '../platform/store/database.ts'
import type { HubDomain } from './domain.ts'
import { readSession, type LeaseKeeper } from './leases.ts'
import { reconcileOutbox } from './outbox.ts'
import type { UpStream } from './receiver.ts'

export interface Greeter {
  context: CloudContext
  domain: HubDomain
  leases: LeaseKeeper
  refusals: CloudRefusals
}

/**
 * Answers a hello: session, lease, both streams and the outbox in one transaction (SPEC §4). `undefined` where another
 * process speaks to the hub, or there is no such hub.
 */
export async function answerHello(
  { context, domain, leases, refusals }: Greeter,
  hubId: number,
  hello: Hello,
): Promise<Welcome | undefined> {
  const { clock, random } = context.runtime
  return context.db.transact(async (tx) => {
    const now = clock.now()
    const hub = await tx.q.selectFrom('hubs').select('id').where('id', '=', hubId).executeTakeFirst()
    if (!hub) {
      refusals.note('hub_message', `hub-${hubId}`, { why: 'no such hub in this database' })
      return undefined
    }
    const isRepeated = (await readSession(tx.q, hubId)) === hello.session
    if (!(await leases.takeByHello(tx.q, hubId, hello))) return undefined
    const ledger = await reconcileLedger(tx, hubId, hello.ledger, now)
    const telemetry = await reconcileTelemetry(tx, hubId, hello.telemetry, now)
    const outbox = await reconcileOutbox(tx, hubId, hello.inbox, {
      isRepeated,
      random,
      snapshot: () => domain.hubSnapshot(tx, context, hubId),
    })
    await domain.hubsHeard(tx, context, [hubId])
    return {
      protocol: hello.protocol,
      session: hello.session,
      answers: hello.clock.monotonic,
      ledger,
      telemetry,
      outbox,
      clock: { wall: now },
    }
  })
}

/**
 * Decides on the hub's ledger stream (SPEC §4). A hello that was overtaken by batches sent after it seems not to fit
 * either: a hub that finds the cloud's position in its own history does not restart.
 */
async function reconcileLedger(
  tx: Tx,
  hubId: number,
  theirs: SenderPosition,
  now: number,
): Promise<Welcome['ledger']> {
  const { current, isKnown } = await lockCursors(tx, hubId, 'ledger', theirs.epoch)
  if (current?.epoch === theirs.epoch) return { ...current, restart: !fits(current, theirs), left: false }
  if (isKnown || theirs.base > 0)
    return { ...(current ?? NEVER), restart: true, left: isKnown && current !== undefined }
  return { ...(await startAtBase(tx, hubId, 'ledger', theirs, now)), restart: false, left: false }
}

/** The same for telemetry, which is lossy: where its cursor does not fit it moves to where the hub stands. */
async function reconcileTelemetry(
  tx: Tx,
  hubId: number,
  theirs: SenderPosition,
  now: number,
): Promise<ReceiverPosition> {
  const { current } = await lockCursors(tx, hubId, 'telemetry', theirs.epoch)
  if (current?.epoch === theirs.epoch && fits(current, theirs)) return current
  return startAtBase(tx, hubId, 'telemetry', theirs, now)
}

interface Cursor {
  epoch: string
  cursor: number
  tag: number
}

const NEVER: ReceiverPosition = { epoch: null, cursor: 0, tag: 0 }

/** Whether a sender that stands so can go on behind what was applied here. */
function fits({ cursor, tag }: Cursor, { base, baseTag, last }: SenderPosition): boolean {
  if (cursor < base || cursor > last) return false
  return cursor > base || tag === baseTag
}

/** The cursor of the current epoch, and whether the cloud has ever followed the one that the hub names. */
async function lockCursors(
  tx: Tx,
  hubId: number,
  stream: UpStream,
  theirs: string,
): Promise<{ current: Cursor | undefined; isKnown: boolean }> {
  const rows = await tx
    .forUpdate(
      tx.q
        .selectFrom('hub_streams')
        .select(['epoch', 'cursor', 'tag', 'is_current'])
        .where('hub_id', '=', hubId)
        .where('stream', '=', stream),
    )
    .execute()
  const [current] = rows
    .filter((row) => row.is_current === 1)
    .map(({ epoch, cursor, tag }): Cursor => ({ epoch, cursor, tag }))
  return { current, isKnown: rows.some((row) => row.epoch === theirs) }
}

/** Makes the epoch of the hub's sender the current one, from its base on. The rows of older ones stay (SPEC §4). */
async function startAtBase(
  tx: Tx,
  hubId: number,
  stream: UpStream,
  { epoch, base, baseTag }: SenderPosition,
  now: number,
): Promise<Cursor> {
  await tx.q
    .updateTable('hub_streams')
    .set({ is_current: 0 })
    .where('hub_id', '=', hubId)
    .where('stream', '=', stream)
    .where('is_current', '=', 1)
    .execute()
  const at = { cursor: base, tag: baseTag }
  await tx.q
    .insertInto('hub_streams')
    .values({ hub_id: hubId, stream, epoch, ...at, is_current: 1, created_at: now })
    .onConflict((conflict) =>
      conflict.columns(['hub_id', 'stream', 'epoch']).doUpdateSet({ ...at, is_current: 1 }),
    )
    .execute()
  return { epoch, ...at }
}
