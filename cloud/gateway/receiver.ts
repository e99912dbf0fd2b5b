import type { Ack, Batch } from '../../protocol/mqtt/session.ts'
import {
  HubEntry,
  TelemetryEntry,
  type AlarmEntry,
  type CommandEntry,
  type LocalEntry,
  type StockEntry,
} from '../../protocol/mqtt/hub-entries.ts'
import { judgeBatch, type ReceiverState, type Verdict } from '../../protocol/stream/receiver.ts'
import { appendAudits } from '../platform/audit/audit.ts'
import { timestamp } from '../platform/calendar/days.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { isLockedOut, isOutage } from '../platform/store/outage.ts'
import { statement } from '../platform/store/statement.ts'
import { recordFinished } from './command-store.ts'
import { ApplyError, type HubDomain } from './domain.ts'
import { maySpeak } from './draining.ts'
import { recordTemperatures } from './temperatures.ts'
import type { DeadLetterRoom } from './dead-letter-room.ts'

export type UpStream = 'ledger' | 'telemetry'

/** The context for applying a hub's entries. */
export interface Receiving {
  context: CloudContext
  domain: HubDomain
  room: DeadLetterRoom
  hubId: number
  /** Called after the commit for each command that the entries reported as finished. */
  onCommandFinished: (commandId: string) => void
  /** Dead letters are replayed, see `ApplyOptions`. */
  isLate?: true
}

/** An entry before validation. */
export interface RawEntry {
  stream: UpStream
  epoch: string
  seq: number
  body: unknown
}

/**
 * How the entries of a batch are applied. `together`: stock in bulk. `one by one`: each under a savepoint, so that only
 * a bad entry becomes a dead letter (I8). `carefully`: unexpected errors too count as the entry's fault.
 */
type Manner = 'together' | 'one by one' | 'carefully'

/**
 * Receives one batch of a hub's stream: checks and applies it in one transaction, with the cursor's row locked (SPEC
 * §5). Returns the acknowledgement to send after the commit, or `foreign` if the epoch is not the agreed one. First
 * applies all entries together. If one cannot be applied, it rolls back and applies them one by one. `careful` begins
 * that way, for a batch with an unexplained earlier failure.
 */
export async function receiveBatch(
  receiving: Receiving,
  stream: UpStream,
  batch: Batch,
  careful: boolean,
): Promise<Ack | 'foreign'> {
  if (careful) return receive(receiving, stream, batch, 'carefully')
  try {
    return await receive(receiving, stream, batch, 'together')
  } catch (error) {
    if (!isEntryFault(error)) throw error
  }
  return receive(receiving, stream, batch, 'one by one')
}

async function receive(
  receiving: Receiving,
  stream: UpStream,
  batch: Batch,
  manner: Manner,
): Promise<Ack | 'foreign'> {
  const { context, hubId } = receiving
  return context.db.transact(async (tx) => {
    const state = await lockCursor(tx, { hubId, stream, now: context.runtime.clock.now() })
    const tags = batch.entries.map((entry) => entry.tag)
    const verdict = judgeBatch(state, { ...batch, tags }, { lossy: stream === 'telemetry' })
    if (verdict.kind === 'foreign') return verdict.kind
    if (verdict.kind === 'apply') {
      const { epoch, first } = batch
      const entries = batch.entries
        .map(({ body }, index): RawEntry => ({ stream, epoch, seq: first + index, body }))
        .slice(verdict.skip)
      await applyAll(tx, receiving, entries, manner)
      const { cursor, tag } = verdict.next
      await moveCursor(tx.q, { hubId, stream, epoch, cursor, tag })
    }
    return acknowledgement(stream, state, verdict)
  })
}

function acknowledgement(
  stream: UpStream,
  state: ReceiverState,
  verdict: Exclude<Verdict, { kind: 'foreign' }>,
): Ack {
  const { epoch, cursor, tag } = verdict.kind === 'apply' ? verdict.next : state
  return { stream, epoch: epoch!, cursor, tag, resend: verdict.kind === 'gap', fork: verdict.kind === 'fork' }
}

const cursorToLock = statement((q, at: { hubId: number; stream: UpStream; now: number }, locks) =>
  locks.forUpdate(
    q
      .selectFrom('hub_streams')
      .select(['epoch', 'cursor', 'tag'])
      .where('hub_id', '=', at.hubId)
      .where('stream', '=', at.stream)
      .where('is_current', '=', 1)
      .where((eb) =>
        eb.exists(
          eb
            .selectFrom('hubs')
            .select('hubs.id')
            .whereRef('hubs.id', '=', 'hub_streams.hub_id')
            .where((hub) => maySpeak(hub, at.now)),
        ),
      ),
  ),
)

/** A hub that is shut out has no cursor: its entries are ignored, also in a session that is still open. */
async function lockCursor(
  tx: Tx,
  at: { hubId: number; stream: UpStream; now: number },
): Promise<ReceiverState> {
  const [row] = await cursorToLock(tx.q, at)
  return row ?? { epoch: null, cursor: 0, tag: 0 }
}

interface Move {
  hubId: number
  stream: UpStream
  epoch: string
  cursor: number
  tag: number
}

const moveCursor = statement((q, to: Move) =>
  q
    .updateTable('hub_streams')
    .set({ cursor: to.cursor, tag: to.tag })
    .where('hub_id', '=', to.hubId)
    .where('stream', '=', to.stream)
    .where('epoch', '=', to.epoch),
)

async function applyAll(
  tx: Tx,
  receiving: Receiving,
  entries: readonly RawEntry[],
  manner: Manner,
): Promise<void> {
  const apply = entries[0]?.stream === 'telemetry' ? applyTelemetry : applyInOrder
  if (manner === 'together') return apply(tx, receiving, entries)
  for (const entry of entries)
    try {
      await tx.savepoint(() => apply(tx, receiving, [entry]))
    } catch (error) {
      const isForeseen = isEntryFault(error)
      if (!isForeseen && (manner !== 'carefully' || isStoreFailure(error))) throw error
      await keepDeadLetter(tx, receiving, entry, error)
    }
}

/** Applies entries of the ledger. An entry that does not fit its schema becomes a dead letter. */
export async function applyInOrder(
  tx: Tx,
  receiving: Receiving,
  entries: readonly RawEntry[],
): Promise<void> {
  const { domain, context, hubId, isLate = false } = receiving
  let stock: StockEntry[] = []
  // These are independent of the other entries, so they may be applied later and need not interrupt a run of stock
  // entries.
  const commands: CommandEntry[] = []
  const alarms: AlarmEntry[] = []
  const local: LocalEntry[] = []
  const applyStock = async (): Promise<void> => {
    if (stock.length > 0) await domain.applyStockEntries(tx, context, hubId, stock, { isLate })
    stock = []
  }
  for (const raw of entries) {
    const { data: entry, error } = HubEntry.safeParse(raw.body)
    switch (entry?.kind) {
      case undefined:
        await keepDeadLetter(tx, receiving, raw, error)
        break
      case 'stock.dropped':
      case 'stock.counted':
      case 'stock.restocked':
        stock.push(entry)
        break
      case 'command.finished':
        commands.push(entry)
        break
      case 'alarm':
        alarms.push(entry)
        break
      case 'local':
        local.push(entry)
        break
      case 'maintenance.report':
        await domain.applyMaintenanceEntry(tx, context, hubId, entry)
        break
      case 'hardware':
        await domain.applyHardwareEntry(tx, hubId, entry)
        break
      case 'operation.unknown':
      case 'operation.settled':
        await applyStock()
        await domain.applyOperationEntry(tx, context, hubId, entry, { isLate })
        break
      case 'state':
        await applyStock()
        await domain.applyStateEntry(tx, context, hubId, entry)
        break
      case 'snapshot':
        await applyStock()
        await domain.applySnapshot(tx, context, hubId, entry)
        break
      case 'order.preparing':
      case 'order.ready':
      case 'order.collecting':
      case 'order.completed':
      case 'order.cancelled':
      case 'order.timed_out':
      case 'order.failed':
      case 'order.unclaimed':
        await applyStock()
        await domain.applyOrderEntry(tx, context, hubId, entry)
    }
  }
  await applyStock()
  await finishCommands(tx, receiving, commands)
  if (alarms.length > 0) await domain.applyAlarmEntries(tx, context, hubId, alarms)
  await auditLocal(tx, context, hubId, local)
}

async function finishCommands(
  tx: Tx,
  { context, hubId, onCommandFinished }: Receiving,
  entries: readonly CommandEntry[],
): Promise<void> {
  if (entries.length === 0) return
  await recordFinished(tx, context.runtime.clock, hubId, entries)
  tx.afterCommit(() => {
    for (const entry of entries) onCommandFinished(entry.command_id)
  })
}

/** Records the actions of people at the hub, by name if the hub knows it. */
const auditLocal = (
  tx: Tx,
  { runtime }: CloudContext,
  hubId: number,
  entries: readonly LocalEntry[],
): Promise<void> =>
  appendAudits(
    tx.q,
    runtime,
    entries.map(({ action, subject, outcome, at, person, shared_token, before, after }) => ({
      actor: person === null ? 'hub page' : `person:${person}`,
      action: `hub.${action}`,
      hubId,
      object: subject.replace(' ', '-'),
      result: outcome,
      detail: {
        at: timestamp(at),
        ...(before !== undefined && { before }),
        ...(after !== undefined && { after }),
        ...(shared_token && { shared_token }),
      },
    })),
  )

export async function applyTelemetry(
  tx: Tx,
  receiving: Receiving,
  entries: readonly RawEntry[],
): Promise<void> {
  const readings: TelemetryEntry[] = []
  for (const raw of entries) {
    const { data, error } = TelemetryEntry.safeParse(raw.body)
    if (data) readings.push(data)
    else await keepDeadLetter(tx, receiving, raw, error)
  }
  await recordTemperatures(tx, receiving.hubId, readings, receiving)
}

/** Stores an entry that cannot be applied, for a person or a later version (I8). */
async function keepDeadLetter(
  tx: Tx,
  { context, domain, room, hubId }: Receiving,
  { stream, epoch, seq, body }: RawEntry,
  error: unknown,
): Promise<void> {
  await tx.q
    .insertInto('dead_letters')
    .values({
      hub_id: hubId,
      stream,
      epoch,
      seq,
      body: await room.storedBody(tx, body),
      error: errorText(error),
      at: context.runtime.clock.now(),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  context.log.warn({ hubId, stream, epoch, seq, err: error }, 'entry of a hub cannot be applied: dead letter')
  domain.deadLettersChanged(tx, context, hubId)
}

export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Whether the entry itself is at fault: it was refused by name, or the database refuses its values (SQLite's
 * constraints; PostgreSQL's classes 22, data, and 23, integrity).
 */
function isEntryFault(error: unknown): boolean {
  return error instanceof ApplyError || /^(SQLITE_CONSTRAINT|22|23)/.test(codeOf(error))
}

/**
 * Whether the store or the network failed, so that the entry may be applied later. Every error with a code of a
 * database or of the system counts; a defect in Larder's code has no code.
 */
export function isStoreFailure(error: unknown): boolean {
  return isOutage(error) || (codeOf(error) !== '' && !isEntryFault(error))
}

/**
 * Whether the store failed for all hubs of a transaction, so that retrying each hub alone is useless. A locked row
 * concerns only one hub.
 */
export const isForNobody = (error: unknown): boolean => isStoreFailure(error) && !isLockedOut(error)

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}
