import type { Erase, Hello, ReceiverPosition, SenderPosition, Welcome } from '../../protocol/mqtt/session.ts'
import type { CloudContext } from '../platform/context.ts'
import type { CloudRefusals } from '../platform/refusals.ts'
import type { Queries, Tx } from '../platform/store/database.ts'
import type { HubDomain } from './domain.ts'
import { storeUpdateReports } from './desired-state.ts'
import { endDrained, maySpeak } from './draining.ts'
import { EpochAllowance, type EpochLimits } from './epoch-allowance.ts'
import type { LeaseKeeper, Said } from './leases.ts'
import { eraseOrder } from './moves.ts'
import { reconcileOutboxes } from './outbox.ts'
import { isForNobody, type UpStream } from './receiver.ts'

export interface HelloContext {
  context: CloudContext
  domain: HubDomain
  leases: LeaseKeeper
  refusals: CloudRefusals
  /** Orders a retired or revoked board to erase its secrets. */
  erase: (hubId: number, order: Erase) => void
}

/**
 * Answers hellos, one of each hub: sessions, leases, streams and outboxes in one transaction (SPEC §4), with a few
 * statements for all hubs. Does not answer a hub that another process serves, or that does not exist.
 */
export async function answerHellos(
  { context, domain, leases, refusals, erase }: HelloContext,
  said: readonly Said[],
): Promise<Map<number, Welcome>> {
  const { clock, random } = context.runtime
  // Sorted, so that several processes lock the rows in one order and cannot deadlock.
  const sorted = said.toSorted((a, b) => a.hubId - b.hubId)
  return context.db.transact(async (tx) => {
    const now = clock.now()
    const sessions = await readSessions(tx.q, idsOf(sorted), now)
    const orderToErase = async (hubId: number): Promise<void> => {
      const order = await eraseOrder(tx.q, hubId)
      if (order) tx.afterCommit(() => erase(hubId, order))
    }
    for (const { hubId } of sorted)
      if (!sessions.has(hubId)) {
        await orderToErase(hubId)
        tx.afterCommit(() =>
          refusals.note('hub_message', `hub-${hubId}`, {
            why: 'no such hub in this database, or it is retired or revoked',
          }),
        )
      }
    const known = sorted.filter(({ hubId }) => sessions.has(hubId))
    if (known.length === 0) return new Map()
    const held = await leases.takeByHellos(tx, known)
    const ours = known.filter(({ hubId }) => held.has(hubId))
    if (ours.length === 0) return new Map()
    await storeUpdateReports(tx, now, ours)
    const cursors = await lockCursors(tx, idsOf(ours))
    const judged = ours.map(({ hubId, hello }) => ({ hubId, hello, ...judgeStreams(cursors(hubId), hello) }))
    await startAtBase(
      tx,
      judged.flatMap(({ hubId, starts }) => starts.map((start) => ({ hubId, ...start }))),
      now,
    )
    const outboxes = await reconcileOutboxes(
      tx,
      ours.map(({ hubId, hello }) => ({
        hubId,
        inbox: hello.inbox,
        isRepeated: sessions.get(hubId)!.session === hello.session,
      })),
      {
        random,
        snapshot: (hubId) => domain.hubSnapshot(tx, context, hubId),
        onFork: () => domain.booksAreBehind(tx, context),
      },
    )
    await domain.hubsHeard(
      tx,
      context,
      ours.map(({ hubId }) => ({ hubId, health: null })),
    )
    const answers = judged.map(({ hubId, hello, ledger, telemetry }) => ({
      hubId,
      hello,
      welcome: {
        protocol: hello.protocol,
        session: hello.session,
        answers: hello.clock.monotonic,
        ledger,
        telemetry,
        outbox: outboxes.get(hubId)!,
        clock: { wall: now },
      } satisfies Welcome,
    }))
    const draining = answers.filter(({ hubId }) => sessions.get(hubId)!.isDraining)
    for (const hubId of await endDrained(tx, draining)) await orderToErase(hubId)
    return new Map(answers.map(({ hubId, welcome }) => [hubId, welcome]))
  })
}

const idsOf = (hubs: readonly { hubId: number }[]): number[] => hubs.map(({ hubId }) => hubId)

interface Known {
  /** The last recorded session; null before the first. */
  session: string | null
  /** The hub is retired (`draining.ts`). */
  isDraining: boolean
}

/** The hubs that exist and may communicate. */
async function readSessions(q: Queries, hubIds: readonly number[], now: number): Promise<Map<number, Known>> {
  const rows = await q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(['hubs.id', 'hub_sessions.session', 'hubs.retired_at'])
    .where('hubs.id', 'in', hubIds)
    .where((eb) => maySpeak(eb, now))
    .execute()
  return new Map(
    rows.map(({ id, session, retired_at }) => [id, { session, isDraining: retired_at !== null }]),
  )
}

interface Cursor {
  epoch: string
  cursor: number
  tag: number
}

/** The receiver of one of a hub's streams: the cursor of the current epoch, and all epochs that it has followed. */
interface Cursors {
  current: Cursor | undefined
  epochs: readonly string[]
}

/** A stream that is followed from the base of the hub's sender on. */
interface Start {
  stream: UpStream
  at: SenderPosition
  /** The receiver has followed another epoch until now. */
  isAnother: boolean
}

/** The answer for both streams, and the streams that are followed from now on. */
function judgeStreams(cursors: (stream: UpStream) => Cursors, hello: Hello) {
  const ledger = judgeLedger(cursors('ledger'), hello.ledger)
  const telemetry = judgeTelemetry(cursors('telemetry'), hello.telemetry)
  const starts = [ledger.start, telemetry.start].filter((start) => start !== undefined)
  return { ledger: ledger.said, telemetry: telemetry.said, starts }
}

/**
 * Decides on the hub's ledger stream (SPEC §4). A hello that was overtaken by later batches seems not to fit either. In
 * that case the hub finds the cloud's position in its own history and does not restart.
 */
function judgeLedger(
  { current, epochs }: Cursors,
  theirs: SenderPosition,
): { said: Welcome['ledger']; start?: Start } {
  if (current?.epoch === theirs.epoch)
    return { said: { ...current, restart: !fits(current, theirs), left: false } }
  // Another epoch was followed since, or entries are missing: the hub's store may be older than the cloud's knowledge.
  if (epochs.includes(theirs.epoch) || theirs.base > 0)
    return { said: { ...(current ?? NEVER), restart: true, left: epochs.length > 0 } }
  const start = { stream: 'ledger', at: theirs, isAnother: current !== undefined } as const
  return { said: { ...baseOf(theirs), restart: false, left: false }, start }
}

/** The same for telemetry, which is lossy: a cursor that does not fit moves to the hub's base. */
function judgeTelemetry(
  { current }: Cursors,
  theirs: SenderPosition,
): { said: ReceiverPosition; start?: Start } {
  if (current?.epoch === theirs.epoch && fits(current, theirs)) return { said: current }
  const start = { stream: 'telemetry', at: theirs, isAnother: current !== undefined } as const
  return { said: baseOf(theirs), start }
}

const baseOf = ({ epoch, base, baseTag }: SenderPosition): Cursor => ({ epoch, cursor: base, tag: baseTag })

const NEVER: ReceiverPosition = { epoch: null, cursor: 0, tag: 0 }

/** Whether the sender can continue after the entries that are applied here. */
function fits({ cursor, tag }: Cursor, { base, baseTag, last }: SenderPosition): boolean {
  if (cursor < base || cursor > last) return false
  return cursor > base || tag === baseTag
}

async function lockCursors(
  tx: Tx,
  hubIds: readonly number[],
): Promise<(hubId: number) => (stream: UpStream) => Cursors> {
  const rows = await tx
    .forUpdate(
      tx.q
        .selectFrom('hub_streams')
        .select(['hub_id', 'stream', 'epoch', 'cursor', 'tag', 'is_current'])
        .where('hub_id', 'in', hubIds)
        .orderBy('hub_id')
        .orderBy('stream'),
    )
    .execute()
  const byHub = new Map(hubIds.map((hubId) => [hubId, [] as typeof rows]))
  for (const row of rows) byHub.get(row.hub_id)!.push(row)
  return (hubId) => (stream) => {
    const own = byHub.get(hubId)!.filter((row) => row.stream === stream)
    const current = own.find(({ is_current }) => is_current === 1)
    return {
      current: current && { epoch: current.epoch, cursor: current.cursor, tag: current.tag },
      epochs: own.map(({ epoch }) => epoch),
    }
  }
}

/** Makes the epochs of hubs' senders the current ones, from their bases on. The rows of older epochs stay (SPEC §4). */
async function startAtBase(
  tx: Tx,
  starts: readonly (Start & { hubId: number })[],
  now: number,
): Promise<void> {
  if (starts.length === 0) return
  const others = starts.filter(({ isAnother }) => isAnother)
  for (const stream of new Set(others.map((start) => start.stream)))
    await tx.q
      .updateTable('hub_streams')
      .set({ is_current: 0 })
      .where('hub_id', 'in', idsOf(others.filter((start) => start.stream === stream)))
      .where('stream', '=', stream)
      .where('is_current', '=', 1)
      .execute()
  await tx.q
    .insertInto('hub_streams')
    .values(
      starts.map(({ hubId, stream, at: { epoch, base, baseTag } }) => ({
        hub_id: hubId,
        stream,
        epoch,
        cursor: base,
        tag: baseTag,
        is_current: 1 as const,
        created_at: now,
      })),
    )
    .onConflict((conflict) =>
      conflict.columns(['hub_id', 'stream', 'epoch']).doUpdateSet((eb) => ({
        cursor: eb.ref('excluded.cursor'),
        tag: eb.ref('excluded.tag'),
        is_current: 1 as const,
      })),
    )
    .execute()
}

interface Asked extends Said {
  welcome: (welcome: Welcome | undefined) => void
  fail: (error: unknown) => void
}

/**
 * Answers hellos. One transaction answers all hellos that arrived while others were being answered. So a single hub
 * waits for no other, and thousands share each statement and commit.
 */
export class Welcomes {
  readonly #context: HelloContext
  readonly #atOnce: number
  readonly #epochs: EpochAllowance
  #asked: Asked[] = []
  /** Running transactions. */
  #desks = 0

  /** `atOnce`: more than one, so that the database and this process can work at the same time. */
  constructor(context: HelloContext, { atOnce, ...limits }: { atOnce: number } & EpochLimits) {
    this.#context = context
    this.#atOnce = atOnce
    this.#epochs = new EpochAllowance(context, limits)
  }

  /** Like `answerHellos`. Another hello of a hub arrives only after this one is answered. */
  answer(hubId: number, hello: Hello): Promise<Welcome | undefined> {
    if (!this.#epochs.admits(hubId, hello)) return Promise.resolve(undefined)
    return new Promise((welcome, fail) => {
      this.#asked.push({ hubId, hello, welcome, fail })
      if (this.#desks < this.#atOnce) void this.#answerAll()
    })
  }

  async #answerAll(): Promise<void> {
    this.#desks += 1
    while (this.#asked.length > 0) {
      const asked = this.#asked
      this.#asked = []
      await this.#together(asked)
    }
    this.#desks -= 1
  }

  async #together(asked: readonly Asked[]): Promise<void> {
    try {
      const welcomes = await answerHellos(this.#context, asked)
      for (const { hubId, welcome } of asked) welcome(welcomes.get(hubId))
    } catch (error) {
      if (asked.length === 1 || isForNobody(error)) for (const { fail } of asked) fail(error)
      // A hello that cannot be answered must not delay those of other hubs.
      else for (const one of asked) await this.#together([one])
    }
  }
}
